#!/bin/sh
# A layer of src/ includes only itself and the layers below it.
set -eu
cd "$(dirname "$0")/.."
below_base="base"
below_os="$below_base os"
below_trace="$below_os trace"
below_pages="$below_os pages"
below_slab="$below_pages slab"
below_shard="$below_slab shard"
below_space="$below_os space"
below_heap="$below_shard heap"
below_modes="$below_heap space trace modes"
below_observe="$below_modes observe"
below_proxy="$below_os proxy"
below_faces="$below_observe proxy faces"
status=0
for layer in base os trace space pages slab shard heap modes observe proxy faces; do
  eval "allowed=\$below_$layer"
  for included in $(grep -rhoE '#include "[a-z]+/' "src/$layer" | sed 's/.*"//; s,/,,' | sort -u); do
    [ "$included" = hummock ] && continue  # the public header
    case " $allowed " in *" $included "*) ;; *)
      echo "src/$layer includes $included, which is above it:" >&2
      grep -rn "#include \"$included/" "src/$layer" >&2
      status=1 ;;
    esac
  done
done
exit $status
