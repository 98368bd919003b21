#!/usr/bin/env bash
# A buyer of bash, curl and openssl: `BUYER_KEY=buyer.pem pay.sh URL` reads the 402, asks the facilitator's /prepare what
# to sign, builds the same bytes from the seller's terms, signs them when they are equal, and pays. `exact` alone.
# `pay.sh --account buyer.pem` prints the account of a key. The layout is plugins/prepare/README.md.
#
# FACILITATOR_URL, MAX_AMOUNT, NETWORK, PASSPHRASE and ASSETS (contracts to pay in) are optional; LEDGER_RPC_URL is
# asked for the newest ledger.
# What a seller, a facilitator or a ledger answers is no number until it is known to be one: bash runs commands that it
# finds in the text of an arithmetic expression.
set -euo pipefail
# The sort of bytes, not of letters.
export LC_ALL=C

hex() { od -An -v -tx1 | tr -d ' \n'; }
unhex() { local bytes; bytes=$(sed 's/../\\x&/g'); printf '%b' "$bytes"; }
refuse() { echo "refused: $1" >&2; exit 3; }
whole='^(0|[1-9][0-9]{0,8})$'
# The first value of a member in JSON: text, or a number.
member() { grep -oE "\"$1\": ?(\"[^\"]*\"|-?[0-9]+)" | head -n1 | sed -E "s/^\"$1\": ?\"?//; s/\"$//"; }

# The checksum of a strkey: CRC16-XModem, low byte first.
checksum() {
  local crc=0 byte bit
  for byte in $(sed 's/../0x& /g'); do
    crc=$((crc ^ byte << 8))
    for bit in 1 2 3 4 5 6 7 8; do
      if ((crc & 0x8000)); then crc=$(((crc << 1 ^ 0x1021) & 0xffff)); else crc=$((crc << 1 & 0xffff)); fi
    done
  done
  printf '%02x%02x' $((crc & 255)) $((crc >> 8))
}
publicKey() { openssl pkey -in "$1" -pubout -outform DER | tail -c 32 | hex; }
account() {
  local body="30$(publicKey "$1")"
  printf '%s%s' "$body" "$(printf %s "$body" | checksum)" | unhex | base32 -w0
}
if [ "${1:-}" = --account ]; then account "$2" && echo && exit; fi

address() {
  local bytes
  bytes=$(printf %s "$1" | base32 -d 2>/dev/null | hex) || refuse "an address is not base32"
  [ "${bytes:66}" = "$(printf %s "${bytes:0:66}" | checksum)" ] || refuse "an address has a wrong checksum"
  case "${#bytes}${bytes:0:2}" in
    7030) printf '0000000000000000%s' "${bytes:2:64}" ;;
    7010) printf '00000001%s' "${bytes:2:64}" ;;
    *) refuse "an address is neither an account nor a contract" ;;
  esac
}

url=$1
facilitator=${FACILITATOR_URL:-http://127.0.0.1:4022}
wanted=${NETWORK:-stellar:testnet}
payer=$(account "$BUYER_KEY")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# 1. The terms.
curl -sS -D "$work/headers" -o "$work/page" "$url"
grep -q '^HTTP[^ ]* 402' "$work/headers" || { cat "$work/page"; exit; }
terms=$(grep -i '^payment-required:' "$work/headers" | sed 's/^[^:]*: *//' | tr -d '\r' | base64 -d | tr '\t\r\n' '   ')
accepted=$(printf %s "$terms" | sed -nE 's/.*"accepts": ?\[(\{[^{}]*("extra": ?\{[^{}]*\})?[^{}]*\}).*/\1/p')
resource=$(printf %s "$terms" | grep -oE '"resource": ?\{[^{}]*\}' | head -n1)
for name in scheme network asset amount payTo maxTimeoutSeconds; do
  # Another one of that name, in `extra`, could be read in its place.
  [ "$(printf %s "$accepted" | grep -oE "\"$name\" *:" | wc -l)" -eq 1 ] || refuse "the terms have no $name, or two"
  declare "$name=$(printf %s "$accepted" | member "$name")"
done
[ "$scheme" = exact ] || refuse "$scheme is no scheme of this buyer"
case "$wanted" in
  stellar:testnet | ledger:testnet)
    usual="CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
    usual+=" CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC" ;;
  stellar:pubnet | ledger:pubnet)
    usual="CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75"
    usual+=" CAS3J7GYLGXMF6TDJBBYYSE3HQ6BBSMLNUQ34T6TZMYMW2EVH34XOWMA" ;;
  *) usual="" ;;
esac
[[ $asset =~ ^C[A-Z2-7]{55}$ && " ${ASSETS:-$usual} " == *" $asset "* ]] || refuse "the asset is not one to pay in"
[ "$network" = "$wanted" ] || refuse "the terms are for another network"
[[ $amount =~ ^[1-9][0-9]{0,17}$ ]] && ((amount <= ${MAX_AMOUNT:-1000000})) || refuse "the price is above the limit"
[[ $maxTimeoutSeconds =~ $whole ]] || refuse "the terms' time is no number"
((maxTimeoutSeconds >= 1 && maxTimeoutSeconds <= 300)) || refuse "the terms' time is not of 1 to 300 seconds"

# 2. What the facilitator says is to be signed.
given=$(curl -sS --fail-with-body "$facilitator/prepare" -H 'content-type: application/json' \
  -d "{\"x402Version\":2,\"payer\":\"$payer\",\"paymentRequirements\":$accepted}") || refuse "$given"
nonce=$(printf %s "$given" | member nonce)
expires=$(printf %s "$given" | grep -oE '"expires": ?\{[^}]*\}')
expiry=$(printf %s "$expires" | member ledger)
newest=$(printf %s "$expires" | member latestLedger) apart=0
if [ -n "${LEDGER_RPC_URL:-}" ]; then
  newest=$(curl -sS "$LEDGER_RPC_URL" -H 'content-type: application/json' \
    -d '{"jsonrpc":"2.0","id":1,"method":"getLatestLedger"}' | member sequence) apart=3
fi
[[ $nonce =~ ^(0|-?[1-9][0-9]{0,18})$ && $expiry =~ $whole && $newest =~ $whole ]] ||
  refuse "the facilitator's answer is incomplete"
((expiry <= newest + (maxTimeoutSeconds + 4) / 5 + apart)) || refuse "the signature would live longer than the terms say"

# 3. The same bytes from the seller's terms.
contract=$(address "$asset") from=$(address "$payer") to=$(address "$payTo")
[ -n "$contract" ] && [ -n "$from" ] && [ -n "$to" ] || exit 3
call="${contract}000000087472616e736665720000000300000012${from}00000012$to"
call+="0000000a$(printf '%032x' "$amount")"
authorized="00000000${call}00000000"
passphrase=$(printf %s "${PASSPHRASE:-Test SDF Network ; September 2015}" | openssl dgst -sha256 -binary | hex)
life=$(printf '%016x%08x' "$nonce" "$expiry")
printf %s "00000009$passphrase$life$authorized" | unhex | openssl dgst -sha256 -binary > "$work/hash"
# The source is all zeros; before it the kind of envelope, behind it fee, sequence, and one operation.
zeros=$(printf '%064d' 0)
head="0000000200000000${zeros}00000064000000000000000100000000000000000000000100000000"
head+="0000001800000000"
envelope() {
  printf %s "${head}${call}0000000100000001${from}$life$1${authorized}0000000000000000" | unhex | base64 -w0
}
[ "$(printf %s "$given" | member hash)" = "$(hex < "$work/hash")" ] &&
  [ "$(printf %s "$given" | member transaction)" = "$(envelope 00000001)" ] ||
  refuse "the facilitator asks for another signature than the terms do"

# 4. The signature, in the form of an account with one key.
signature=$(openssl pkeyutl -sign -inkey "$BUYER_KEY" -rawin -in "$work/hash" | hex)
value="000000100000000100000001000000110000000100000002"
value+="0000000f0000000a7075626c69635f6b65790000"
value+="0000000d00000020$(publicKey "$BUYER_KEY")0000000f000000097369676e6174757265000000"
value+="0000000d00000040$signature"

# 5. The payment; while it is pending the same one again, never another.
payment=$(printf '{"x402Version":2,"payload":{"transaction":"%s"},"accepted":%s%s}' \
  "$(envelope "$value")" "$accepted" "${resource:+,$resource}" | base64 -w0)
for _ in $(seq 20); do
  status=$(curl -sS -D "$work/headers" -o "$work/page" -w '%{http_code}' -H "payment-signature: $payment" "$url")
  receipt=$(grep -i '^payment-response:' "$work/headers" | sed 's/^[^:]*: *//' | tr -d '\r' | base64 -d || true)
  [[ $receipt =~ settlement_pending|status_unknown ]] || break
  sleep 1
done
echo "$status $(cat "$work/page")"
[ -z "$receipt" ] || echo "$receipt"
[ "$status" = 200 ]
