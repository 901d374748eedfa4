# Checks the source of a Homebrew formula, installs it and runs its test, as `brew install` and `brew test` would.
# Usage: ruby formula.rb FORMULA FOLDER-OF-TARBALLS WORK
require "digest"
require "fileutils"
require "pathname"

class Formula
  class << self
    attr_reader :facts, :check

    def fact(name, *value)
      (@facts ||= {})[name] = value.first unless value.empty?
      @facts&.fetch(name, nil)
    end

    %i[desc homepage url sha256 license].each { |name| define_method(name) { |*value| fact(name, *value) } }

    def depends_on(*) = nil

    def test(&block) = @check = block

    def inherited(formula)
      super
      (@all ||= []) << formula
    end

    def all = @all
  end

  attr_reader :prefix, :testpath

  def initialize(prefix, testpath)
    @prefix = Pathname(prefix)
    @testpath = Pathname(testpath)
  end

  def include = prefix / "include"
  def lib = prefix / "lib"
  def std_cmake_args = ["-DCMAKE_INSTALL_PREFIX=#{prefix}", "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_BUILD_TYPE=Release"]
  def system(*command) = Kernel.system(*command.map(&:to_s), exception: true)
end

def ENV.cc = "cc"

formula, tarballs, work = ARGV
load File.expand_path(formula)
kind = Formula.all.first
%i[desc homepage url sha256 license].each { |name| kind.fact(name) || abort("the formula says no #{name}") }
tarball = File.join(tarballs, File.basename(kind.url))
abort "#{tarball} has another checksum" unless Digest::SHA256.file(tarball).hexdigest == kind.sha256
%w[source prefix test].each { |folder| FileUtils.mkdir_p(File.join(work, folder)) }
made = kind.new(File.join(work, "prefix"), File.join(work, "test"))
made.system("tar", "-xzf", tarball, "-C", File.join(work, "source"), "--strip-components=1")
Dir.chdir(File.join(work, "source")) { made.install }
Dir.chdir(made.testpath) { made.instance_eval(&kind.check) }
