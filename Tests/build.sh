#!/usr/bin/env bash
# Builds as tests do, with the arguments of `swift build`. Warnings are errors here, and only here: someone who builds with
# a newer compiler is not punished for it. What only a debugger reads is left out, for it takes time.
export STEPCTL_STRICT=1
exec swift build -debug-info-format none "$@"
