#!/bin/sh
# An operator's keys in a PKCS #11 token (SoftHSM): run as root in a Debian that has stepctl-operator, stepd, mosquitto, and
# the story's Demo in /opt/Tests. A command that does not find the token says so in one line.
set -e
# The broker gives up root, and has to read its files.
mkdir /opt/story
cd /opt/story
module=/usr/lib/softhsm/libsofthsm2.so
export SOFTHSM2_CONF="$PWD/softhsm2.conf"
mkdir tokens
printf '%s\n' "directories.tokendir = $PWD/tokens" 'objectstore.backend = file' 'log.level = ERROR' >softhsm2.conf
(umask 077 && printf 1234 >pin)
softhsm2-util --init-token --free --label fleet --pin 1234 --so-pin 1234 >/dev/null
pkcs11-tool --module $module --login --pin 1234 --keypairgen --key-type EC:edwards25519 --label tokens --id 02 >/dev/null 2>&1

stepctl provision vehicle car --name 'Rolling Chassis' --no-input --quiet >/dev/null
softhsm2-util --import car/operator/ca.key --token fleet --label authority --id 01 --pin 1234 >/dev/null
cat >openssl.cnf <<END
openssl_conf = all
[all]
providers = used
[used]
default = of_openssl
pkcs11 = of_token
[of_openssl]
activate = 1
[of_token]
activate = 1
module = /usr/lib/$(uname -m)-linux-gnu/ossl-modules/pkcs11.so
pkcs11-module-path = $module
pkcs11-module-token-pin = file:$PWD/pin
pkcs11-module-encode-provider-uri-to-pem = true
pkcs11-module-quirks = no-deinit
END
token() { OPENSSL_CONF="$PWD/openssl.cnf" "$@"; }
token openssl pkey -in 'pkcs11:object=authority;type=private' -out car/operator/ca.key
(umask 077 && token openssl pkey -in 'pkcs11:object=tokens;type=private' -out next.pem)

mosquitto -c car/mosquitto.conf 2>broker.log & broker=$!
stepd --config car/stepd.toml 2>stepd.log & stepd=$!
trap 'kill $broker $stepd' EXIT
until grep -q 'connected to' stepd.log; do sleep 0.1; done

token stepctl operator keys rotate car --key next.pem
token stepctl operator log car >/dev/null
token stepctl operator keys rotate car
grep -q 'PKCS#11 PROVIDER URI' car/operator/token.jwk
grep -q 'PKCS#11 PROVIDER URI' car/operator/ca.key
token stepctl provision token car --rider alice --quiet >/dev/null
# Whoever has the files has no key.
status=0
stepctl provision token car --rider mallory 2>refused || status=$?
cat refused
[ "$status" = 78 ] && [ "$(wc -l <refused)" = 1 ]
/opt/Tests/Demo/walk.py --vehicle car/vehicle.toml --out walk.btsnoop
stepctl open --vehicle car/riders/alice --radio btsnoop:walk.btsnoop
token stepctl operator keys show car
