#!/bin/sh
# Links the gateway statically. For cargo's RUSTC_WRAPPER: no library has to be compiled for it, as it would be for RUSTFLAGS.
#
#   static-rustc.sh RUSTC ARGUMENT...
case " $* " in
*" --crate-name proxy_gateway "*" --crate-type bin "*) exec "$@" -C target-feature=+crt-static ;;
esac
exec "$@"
