#!/usr/bin/env bash
# Lays out a package archive that a web server can serve as it is: archive.sh KEY PACKAGES OUTPUT. PACKAGES is a folder
# with SUITE/ARCHITECTURE/*.deb, as packages.sh makes it. What is not there is said, and then nothing is laid out, unless
# PARTIAL is set: an archive that lacks a package would leave those who have it without updates. KEY names the one secret
# key of gpg that signs. OUTPUT is replaced as a whole:
#
#   stepctl.gpg              the public key, for apt's signed-by
#   dists/SUITE/             the signed index
#   pool/SUITE/*.deb         the packages
#   sbom/*.cdx.json          what is in them, for each release and processor
#   CHANGELOG.md
#   SHA256SUMS, SHA256SUMS.gpg   of all of these, and its signature
set -euo pipefail
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.."

key=$1 packages=$(realpath -m "$2") output=$(realpath -m "$3")
python=$PWD/.build/sbom/bin/python
fail() { echo "archive.sh: $2" >&2; exit "$1"; }

[[ -n $key ]] || fail 64 'say which key signs: make archive KEY=fingerprint (gpg --list-secret-keys)'
# A name could also be that of somebody else's key, and exporting by name would give out both.
mapfile -t keys < <({ gpg --batch --with-colons --list-secret-keys -- "$key" 2>/dev/null || true; } |
  awk -F: '$1 == "sec" { first = 1 } $1 == "fpr" && first { print $10; first = 0 }')
((${#keys[@]} == 1)) || fail 66 "gpg has ${#keys[@]} secret keys of the name \"$key\", and one is needed"
sign() { gpg --batch --yes --quiet --local-user "${keys[0]}!" --digest-algo SHA512 "$@"; }

mkdir -p "$(dirname "$output")"
new=$(mktemp -d "$(dirname "$output")/archive.XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"
cp CHANGELOG.md "$new/"
gpg --batch --export --export-options export-minimal "${keys[0]}!" >"$new/stepctl.gpg"

missing=0
for suite in bookworm trixie; do
  architectures=()
  for architecture in amd64 arm64; do
    set -- "$packages/$suite/$architecture"
    found=()
    for name in stepctl stepctl-operator stepd stepfleet; do
      if compgen -G "$1/${name}_*_$architecture.deb" >/dev/null; then
        found+=("$1/${name}"_*_"$architecture.deb")
      else
        echo "archive.sh: $suite has no $name for $architecture" >&2
        ((missing += 1))
      fi
    done
    if ((${#found[@]} == 0)); then continue; fi
    architectures+=("$architecture")
    mkdir -p "$new/pool/$suite" "$new/dists/$suite/main/binary-$architecture" "$new/sbom"
    cp "${found[@]}" "$new/pool/$suite/"
    "$python" Packaging/sbom.py "$new/sbom/$suite-$architecture.cdx.json" "${found[@]}"
    index=$new/dists/$suite/main/binary-$architecture
    (cd "$new" && apt-ftparchive --arch "$architecture" packages "pool/$suite") >"$index/Packages"
    xz --keep "$index/Packages"
    # While a copy of the archive is being renewed, apt finds the index that its Release file means.
    mkdir -p "$index/by-hash/SHA256"
    for file in "$index"/Packages{,.xz}; do
      cp "$file" "$index/by-hash/SHA256/$(sha256sum "$file" | cut -d ' ' -f 1)"
    done
  done
  if ((${#architectures[@]} == 0)); then continue; fi
  apt-ftparchive -o APT::FTPArchive::Release::Origin=stepctl -o APT::FTPArchive::Release::Label=stepctl \
    -o APT::FTPArchive::Release::Suite="$suite" -o APT::FTPArchive::Release::Codename="$suite" \
    -o APT::FTPArchive::Release::Components=main -o APT::FTPArchive::Release::Acquire-By-Hash=yes \
    -o APT::FTPArchive::Release::Architectures="${architectures[*]}" \
    -o APT::FTPArchive::MD5=no -o APT::FTPArchive::SHA1=no \
    release "$new/dists/$suite" >"$new/Release"
  mv "$new/Release" "$new/dists/$suite/"
  sign --clearsign --output "$new/dists/$suite/InRelease" "$new/dists/$suite/Release"
  sign --armor --detach-sign --output "$new/dists/$suite/Release.gpg" "$new/dists/$suite/Release"
done
[[ -d $new/pool ]] || fail 66 "there are no packages in $packages: run make debs"
((missing == 0)) || [[ -n ${PARTIAL-} ]] || fail 66 'packages are missing: make them, or say PARTIAL=yes to go without them'

sums=$(cd "$new" && find . -type f -printf '%P\n' | sort | xargs sha256sum)
echo "$sums" >"$new/SHA256SUMS"
sign --detach-sign --output "$new/SHA256SUMS.gpg" "$new/SHA256SUMS"
rm -rf "$output"
mv "$new" "$output"
trap - EXIT
echo "$output"
