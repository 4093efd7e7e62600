#!/usr/bin/env bash
# Installs the packages of `make deb` in a fresh Debian, uses them, upgrades and purges them, and sees that nothing
# stays: deb.sh [SUITE [ARCHITECTURE]], as root, with mmdebstrap and Debian's mirror. The packages are in
# .build/deb/SUITE/ARCHITECTURE. Takes some minutes, and with qemu-user a quarter of an hour.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source Tests/Install/root.sh

packages=() names=()
for name in stepctl stepctl-operator stepd stepfleet; do
  file=$(compgen -G ".build/deb/$suite/$architecture/${name}_*.deb" || true)
  if [[ -n $file ]]; then
    packages+=("$file")
    names+=("$name")
  else
    echo "deb.sh: there is no package $name for $suite and $architecture" >&2
  fi
done
[[ " ${names[*]}" == *' stepctl stepctl-operator stepd'* ]] || { echo 'deb.sh: run make deb' >&2; exit 66; }

# What stands in the file system, without what dpkg and apt keep for themselves.
files() {
  local own pruned=()
  for own in dev opt proc run tmp var/cache var/lib/apt var/lib/dpkg var/log; do pruned+=(-o -path "$root/$own"); done
  find "$root" -xdev \( "${pruned[@]:1}" \) -prune -o -print | sed "s|^$root||" | sort
}

mkdir "$root/opt/packages"
cp "${packages[@]}" "$root/opt/packages"

title 'what a vehicle takes'
# Neither a compiler nor what reads tags and pictures.
inside sh -c 'apt-get install --simulate --yes --no-install-recommends /opt/packages/stepd_*.deb' >"$work/simulated"
taken=$(sed -n 's/^Inst \([^ ]*\) .*/\1/p' "$work/simulated" | sort | paste -sd ' ')
echo "$taken"
[[ " $taken " == *' stepd '* ]]
for word in gcc g++ cpp clang llvm swift binutils -dev nfc usb pcsc jpeg png zbar zxing v4l qrencode; do
  if [[ $taken == *"$word"* ]]; then
    echo "deb.sh: a vehicle takes no $word" >&2
    exit 1
  fi
done

# What is installed beside stays: the story needs a broker, and programs that play a reader and a walk.
inside apt-get -qq install --yes --no-install-recommends mosquitto mosquitto-clients python3 systemd >/dev/null
# OpenSSL's provider for PKCS #11 came with Debian 13.
if [[ $suite != bookworm && -z $foreign ]]; then
  inside apt-get -qq install --yes --no-install-recommends openssl opensc pkcs11-provider softhsm2 >/dev/null
fi

title 'installed'
# Dependencies stay when the packages go, so they come first.
mapfile -t depends < <(for package in "${packages[@]}"; do dpkg-deb --field "$package" Depends; done |
  tr ',' '\n' | sed 's/([^)]*)//; s/|.*//; s/ //g' | grep -vx stepctl | sort -u)
inside apt-get -qq install --yes --no-install-recommends "${depends[@]}" >/dev/null
files >"$work/before"
inside sh -c 'dpkg --install /opt/packages/*.deb' >/dev/null
for name in "${names[@]}"; do
  if [[ $name != stepctl* ]] && inside systemctl is-enabled "$name.service" 2>/dev/null; then exit 1; fi
done
if inside systemctl is-enabled stepd-broker.service 2>/dev/null; then exit 1; fi
inside getent group stepd

title 'the build is the same in all places'
same_build "${names[@]}"
for package in "${packages[@]}"; do
  # shellcheck disable=SC2016
  named=$(dpkg-deb --show --showformat='${Package}_${Version}_${Architecture}.deb' "$package")
  [[ $(basename "$package") == "$named" ]]
done

title 'used: the story of make demo'
mkdir -p "$root/opt/Tests"
cp -R Tests/Demo Tests/Peers "$root/opt/Tests"
inside /opt/Tests/Demo/demo.sh /usr/bin >"$work/story" 2>&1 || { tail -n 40 "$work/story" >&2; exit 1; }
grep -c '^exit ' "$work/story"

if [[ $suite != bookworm && -z $foreign ]]; then
  title 'used: an operator whose keys are in a token'
  cp Tests/Install/token.sh "$root/opt/token"
  inside /opt/token
fi

title 'used: a technician with a new vehicle, under systemd'
# What a technician types, and what is there then.
cat >"$root/opt/technician" <<'EOF'
set -e
cd /opt
stepctl provision vehicle car --name 'Rolling Chassis' --no-input
stepctl provision start car
systemctl is-active stepd-broker stepd
systemctl is-enabled stepd-broker stepd
stat -c '%U %a' /var/lib/stepd-broker/tls/broker.key
stepctl provision token car --rider alice --quiet >/dev/null
/opt/Tests/Demo/walk.py --vehicle car/vehicle.toml --out walk.btsnoop
stepctl open --vehicle car/riders/alice --radio btsnoop:walk.btsnoop
EOF
if [[ " ${names[*]} " == *' stepfleet '* ]]; then
  # As stepfleet(8) has it.
  cat >>"$root/opt/technician" <<'EOF'
stepfleet init /var/lib/stepfleet --host localhost --port 9443 >/dev/null
chown -R stepfleet: /var/lib/stepfleet
cd /var/lib/stepfleet/operator/operator
systemd-creds encrypt --with-key=host --name=token.jwk token.jwk /etc/stepfleet.token.jwk 2>/dev/null
ln -sf /run/credentials/stepfleet.service/token.jwk token.jwk
mkdir /etc/systemd/system/stepfleet.service.d
cat >/etc/systemd/system/stepfleet.service.d/keys.conf <<END
[Service]
LoadCredentialEncrypted=token.jwk:/etc/stepfleet.token.jwk
END
systemctl daemon-reload
systemctl start stepfleet
for try in $(seq 100); do if [ -S /var/lib/stepfleet/run/admin.sock ]; then break; fi; sleep 0.1; done
stepfleet vehicle add 'Another Chassis'
if setpriv --reuid nobody --regid nogroup --clear-groups cat /run/credentials/stepfleet.service/token.jwk; then exit 1; fi
systemctl stop stepfleet
if [ -e token.jwk ]; then exit 1; fi
if stepctl operator keys show /var/lib/stepfleet/operator; then exit 1; fi
EOF
fi
# boot: starts a copy of the root with its own systemd (boot.sh); $unshared is what to kill at its end, and $first its
# first process.
boot() {
  mkdir "$work/machine"
  unshare --mount --pid --fork --kill-child --uts --ipc --net Tests/Install/boot.sh "$root" "$work/machine" \
    </dev/null >"$work/systemd" 2>&1 &
  unshared=$!
  for ((tries = 0; tries < 150; tries++)); do
    first=$(pgrep -P "$unshared" | head -n 1 || true)
    if [[ -n $first && -S /proc/$first/root/run/systemd/private ]]; then return; fi
    sleep 0.1
  done
  return 1
}
if [[ -n $foreign ]]; then
  echo 'deb.sh: skipped: systemd does not run under qemu-user' >&2
else
  status=0
  if boot; then
    timeout --kill-after=5 120 nsenter --target "$first" --mount --pid --net --root --wd env -i \
      PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 sh /opt/technician </dev/null || status=$?
  else
    echo 'deb.sh: skipped: systemd does not run in this container' >&2
    cat "$work/systemd" >&2
  fi
  kill -KILL "$unshared" 2>/dev/null || true
  wait "$unshared" 2>/dev/null || true
  ((status == 0)) || exit 1
fi

if [[ " ${names[*]} " == *' stepfleet '* ]]; then
  title 'used: a server of a fleet'
  inside stepfleet init /var/lib/stepfleet --host localhost >/dev/null
  inside chown -R stepfleet: /var/lib/stepfleet
  inside setpriv --reuid stepfleet --regid stepfleet --clear-groups stepfleet serve /var/lib/stepfleet 2>"$work/fleet" &
  server=$!
  for ((tries = 0; tries < 100; tries++)); do
    if [[ -S $root/var/lib/stepfleet/run/admin.sock ]]; then break; fi
    sleep 0.1
  done
  inside stepfleet vehicle add 'Rolling Chassis' || { cat "$work/fleet" >&2; exit 1; }
  kill "$(pgrep -P "$server")"
  wait "$server" || true
  # mosquitto finds the package's plugin, and each function that the plugin takes of it.
  inside chown -R mosquitto: /var/lib/stepfleet/operator/tls/broker.key /var/lib/stepfleet/operator/data
  inside timeout 5 mosquitto -c /var/lib/stepfleet/operator/mosquitto.conf 2>"$work/broker" || true
  grep '/usr/lib/stepfleet/mosquitto_stepfleet.so' "$work/broker"
  grep -q ' running$' "$work/broker"
  # Nothing but a mailer is missing, which the package recommends and this root does not take.
  if inside stepfleet check /var/lib/stepfleet >"$work/checked" 2>&1; then exit 1; fi
  grep -v '^stepfleet: error: 1 thing is wrong$' "$work/checked" | tee "$work/wrong"
  [[ $(<"$work/wrong") == '/usr/sbin/sendmail cannot be run,'* && $(wc -l <"$work/wrong") == 1 ]]
fi

title 'upgraded'
for package in "${names[@]}"; do
  dpkg-deb --raw-extract "$root"/opt/packages/"${package}"_*.deb "$work/$package"
  # A package of the same source may depend on exactly this version of another.
  sed -i 's/^Version: .*/&+upgrade/; s/(= \([^)]*\))/(= \1+upgrade)/g' "$work/$package/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip --build "$work/$package" "$root/opt/packages/upgrade-$package.deb" >/dev/null
done
mkdir -p "$root/var/lib/stepctl"
echo key >"$root/var/lib/stepctl/key"
inside sh -c 'dpkg --install /opt/packages/upgrade-*.deb' >/dev/null
inside dpkg-query --show "${names[@]}"
[[ $(<"$root/var/lib/stepctl/key") == key ]]

title 'purged'
inside dpkg --purge "${names[@]}" 2>"$work/said" >/dev/null
grep 'is kept' "$work/said"
rm -r "$root/var/lib/stepctl"
if [[ -e $root/var/lib/stepfleet ]]; then
  # Its files are somebody's as long as they are there.
  inside getent passwd stepfleet
  rm -r "$root/var/lib/stepfleet"
  inside deluser --quiet --system stepfleet
fi
files >"$work/after"
# Python notes what it compiled, and the group file its former self.
if ! diff <(grep -Ev '__pycache__|^/etc/(group|gshadow|passwd|shadow)-?$' "$work/before") \
  <(grep -Ev '__pycache__|^/etc/(group|gshadow|passwd|shadow)-?$' "$work/after"); then
  echo 'deb.sh: something stays, or is gone' >&2
  exit 1
fi
if inside getent group stepd; then exit 1; fi
echo 'nothing is left behind'
