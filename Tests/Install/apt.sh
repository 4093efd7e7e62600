#!/usr/bin/env bash
# Installs from an archive of `make archive`, as README says it, in a fresh Debian: apt.sh [SUITE [ARCHITECTURE]], as
# root, with mmdebstrap and Debian's mirror. The packages are in .build/deb/SUITE/ARCHITECTURE. A key is made for it.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
if [[ -z ${STEPCTL_NAMESPACES-} ]]; then Tests/prepare.sh archive || exit; fi
source Tests/Install/root.sh

title 'an archive'
export GNUPGHOME=$work/gnupg
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'an archive in a test' ed25519 sign never 2>/dev/null
PARTIAL=yes Packaging/archive.sh 'an archive in a test' .build/deb "$work/archive" 2>/dev/null
(cd "$work/archive" && sha256sum --check --quiet SHA256SUMS &&
  gpg --quiet --verify SHA256SUMS.gpg SHA256SUMS 2>/dev/null)
find "$work/archive" -type f -printf '%P\n' | sort
python3 -u -m http.server --bind 127.0.0.1 --directory "$work/archive" 0 >"$work/served" 2>&1 &
until port=$(grep -oE ' port [0-9]+' "$work/served" | grep -oE '[0-9]+'); do sleep 0.1; done

title 'installed as README says it'
inside apt-get -qq install --yes --no-install-recommends curl >/dev/null
# What is typed as root, with this archive in the place of its example.
sed -n '/^## Install/,/^## /s/^    //p' README.md | head -n 3 |
  sed "s|https://apt.example|http://127.0.0.1:$port|; s| trixie main| $suite main|" >"$work/typed"
cat "$work/typed"
grep -q "127.0.0.1:$port $suite main" "$work/typed"
sed 's/apt install/apt install --yes/' "$work/typed" >"$root/opt/typed"
inside sh -e /opt/typed >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
inside stepctl --version
inside test -e /usr/share/doc/stepctl/CHANGELOG.md.gz

title 'all of them, from the same archive'
names=()
for name in stepctl stepctl-operator stepd stepfleet; do
  if compgen -G "$work/archive/pool/$suite/${name}_*_$architecture.deb" >/dev/null; then names+=("$name"); fi
done
inside apt-get -qq install --yes --no-install-recommends "${names[@]}" >/dev/null
inside apt-cache policy "${names[@]}" | grep -c "http://127.0.0.1:$port $suite/main $architecture Packages"
same_build "${names[@]}"

title 'what was changed on the way is refused'
file=$(compgen -G "$work/archive/pool/$suite/stepd_*_$architecture.deb")
printf x | dd of="$file" bs=1 seek=9999 conv=notrunc status=none
inside apt-get clean
if inside apt-get -qq install --yes --reinstall stepd >"$work/said" 2>&1; then exit 1; fi
grep -E 'Hash Sum mismatch|unexpected size' "$work/said" | head -n 1
inside stepd --version | head -n 1
