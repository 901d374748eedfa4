<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html"/>
  <xsl:key name="by-kind" match="entry" use="@kind"/>
  <xsl:template match="/catalogue">
    <html><body>
      <xsl:for-each select="entry[generate-id() = generate-id(key('by-kind', @kind)[1])]">
        <xsl:sort select="@kind"/>
        <h1><xsl:value-of select="@kind"/>: <xsl:value-of select="sum(key('by-kind', @kind)/price)"/></h1>
        <ul>
          <xsl:apply-templates select="key('by-kind', @kind)"><xsl:sort select="name"/></xsl:apply-templates>
        </ul>
      </xsl:for-each>
    </body></html>
  </xsl:template>
  <xsl:template match="entry">
    <li id="e{@id}"><b><xsl:value-of select="translate(name, 'abcdefgh', 'ABCDEFGH')"/></b>
      <xsl:for-each select="tag"><i><xsl:value-of select="concat(position(), '-', .)"/></i></xsl:for-each>
      <xsl:value-of select="normalize-space(substring(text, 1, 120))"/>
    </li>
  </xsl:template>
</xsl:stylesheet>
