#!/usr/bin/env bash
# A buyer in bash, awk, curl and openssl: `BUYER_KEY=buyer.pem pay.sh URL` reads the 402, asks the facilitator's
# /prepare for the bytes to sign, builds the same bytes from the seller's terms, signs them when they are equal, and
# pays. Only `exact`.
#
#   pay.sh [-X METHOD] [-d BODY | -d @FILE] [-H 'name: value']… [--out FILE] URL
#   pay.sh --resume FILE        sends a kept payment again
#   pay.sh --account buyer.pem  prints the account of a key
#
# A payment is stored in PAYMENTS (default ~/.x402-payments) before it is sent; the same call sends it again until its
# page arrives, and no other is signed before its last ledger has closed. `--out` writes the page's bytes to FILE
# and the receipt to FILE.receipt.json. The layout of the signed bytes is in plugins/prepare/README.md.
#
# FACILITATOR_URL, MAX_AMOUNT, NETWORK, PASSPHRASE and ASSETS (contracts to pay in) are optional; LEDGER_RPC_URL is
# asked for the newest ledger. MAX_AMOUNT is in units of the first asset, or for each: "C…=1000 C…=50".
# Validate every number in an answer before use, whether from a seller, a facilitator or a ledger: bash runs commands
# that it finds in the text of an arithmetic expression.
set -euo pipefail
# Sort by bytes, not by letters.
export LC_ALL=C

work=$(mktemp -d)
# Every exit prints a message.
finish() {
  local code=$?
  [ "$code" = 0 ] || [ -e "$work/said" ] || echo "stopped with exit code $code" >&2
  rm -rf "$work"
}
trap finish EXIT
hex() { od -An -v -tx1 | tr -d ' \n'; }
unhex() { local bytes; bytes=$(sed 's/../\\x&/g'); printf '%b' "$bytes"; }
say() { echo "$1" >&2; : > "$work/said"; }
refuse() { say "refused: $1"; exit 3; }
whole='^(0|[1-9][0-9]{0,8})$'

# Prints every value of a JSON text as a line: its path, a tab, its text. Prints nothing for invalid JSON.
flat() {
  tr '\t\r\n' '   ' | awk '
    function bad() { failed = 1; exit 1 }
    function blank() { while (substr(s, i, 1) == " ") i++ }
    function text(   from) {
      from = i
      if (substr(s, i++, 1) != "\"") bad()
      while ((c = substr(s, i, 1)) != "\"") { if (c == "") bad(); i += c == "\\" ? 2 : 1 }
      return substr(s, from + 1, i++ - from - 1)
    }
    function value(path, depth,   from, n, name) {
      if (depth > 32) bad()
      blank(); from = i; c = substr(s, i, 1)
      if (c == "\"") text()
      else if (c == "{" || c == "[") {
        i++; blank(); n = 0
        if (substr(s, i, 1) == (c == "{" ? "}" : "]")) i++
        else if (c == "{") do {
          blank(); name = text(); blank()
          if (substr(s, i++, 1) != ":") bad()
          value(path "." name, depth + 1); blank(); c = substr(s, i++, 1)
          if (c != "," && c != "}") bad()
        } while (c == ",")
        else do {
          value(path "[" n++ "]", depth + 1); blank(); c = substr(s, i++, 1)
          if (c != "," && c != "]") bad()
        } while (c == ",")
      } else if (match(substr(s, i, 40), /^(-?[0-9][0-9.eE+-]*|true|false|null)/)) i += RLENGTH
      else bad()
      lines[++count] = path "\t" substr(s, from, i - from)
    }
    { s = s $0 }
    END {
      if (failed) exit 1
      i = 1; value("", 0); blank()
      if (i <= length(s)) exit 1
      for (n = 1; n <= count; n++) print lines[n]
    }' || true
}
# The single value at a path of a flat file, without quotes; nothing if there is none, or two.
pick() {
  awk -F '\t' -v path="$2" '$1 == path { n++; v = $2 } END { gsub(/^"|"$/, "", v); if (n == 1) print v }' "$work/$1"
}

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

usage="pay.sh [-X METHOD] [-d BODY] [-H 'name: value']... [--out FILE] URL, or pay.sh --resume FILE"
method="" url="" out="" resumed="" headers=() data=() hasType=0
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || [[ $1 != -* ]] || refuse "$usage"
  case "$1" in
    -X) method=$2 && shift 2 ;;
    -d) data=(--data-binary "@$work/body")
      if [[ $2 == @* ]]; then cat "${2:1}" > "$work/body"; else printf %s "$2" > "$work/body"; fi
      shift 2 ;;
    -H) headers+=("$2") && shift 2 ;;
    --out) out=$2 && shift 2 ;;
    --resume) resumed=$2 && shift 2 ;;
    -*) refuse "$usage" ;;
    *) url=$1 && shift ;;
  esac
done
[ -n "$url$resumed" ] || refuse "$usage"
# A page that cannot be written must not be paid.
[ -z "$out" ] || { : >> "$out" && : >> "$out.receipt.json"; } 2> /dev/null || refuse "$out cannot be written"
facilitator=${FACILITATOR_URL:-http://127.0.0.1:4022}
wanted=${NETWORK:-stellar:testnet}
payer=$(account "$BUYER_KEY")
folder=${PAYMENTS:-$HOME/.x402-payments}

# A text from a stored payment, written by this script or by the JavaScript or Python buyer.
kept() { pick kept "$1" | sed 's/\\\(["\\/]\)/\1/g'; }
if [ -n "$resumed" ]; then
  flat < "$resumed" > "$work/kept"
  method=$(kept .method) url=$(kept .url)
  if [ -n "$(kept .body)" ]; then kept .body | base64 -d > "$work/body" && data=(--data-binary "@$work/body"); fi
  while IFS=$'\t' read -r path _; do
    [[ $path == .headers.* ]] && headers+=("${path#.headers.}: $(kept "$path")")
  done < "$work/kept"
fi
[ -n "$method" ] || method=$([ ${#data[@]} -gt 0 ] && echo POST || echo GET)
method=${method^^}
for one in ${headers[@]+"${headers[@]}"}; do [[ $one =~ ^[Cc]ontent-[Tt]ype: ]] && hasType=1; done
given=(-X "$method")
for one in ${headers[@]+"${headers[@]}"}; do given+=(-H "$one"); done
# curl would send its own content type.
[ ${#data[@]} -eq 0 ] || [ $hasType -eq 1 ] || given+=(-H "content-type:")
given+=(${data[@]+"${data[@]}"})

# Sends one request; sets `status` and writes the files headers and page.
request() {
  status=$(curl -sS --no-location --max-time 60 -D "$work/headers" -o "$work/page" -w '%{http_code}' \
    "${given[@]}" "$@" "$url") ||
    return 1
  # curl takes headers that a cut ended for complete.
  [[ $(tail -c 3 "$work/headers" | hex) =~ 0a(0d)?0a$ ]] || { echo "cut within its headers" >&2 && return 1; }
}
header() { { grep -i "^$1:" "$work/headers" || true; } | tail -n1 | sed 's/^[^:]*: *//' | tr -d '\r'; }
# The terms of a 402, from its header, or else from its body.
readTerms() {
  { header payment-required | base64 -d 2> /dev/null || true; } | flat > "$work/terms"
  [ -s "$work/terms" ] || flat < "$work/page" > "$work/terms"
}
finishWith() {
  touch "$work/page"
  if [ -n "$out" ]; then
    cp "$work/page" "$out" && printf %s "${receipt:-null}" > "$out.receipt.json"
  else
    printf '%s ' "$status" && cat "$work/page" && echo
  fi || { say "the page cannot be written; its payment is kept: pay.sh --resume $file" && exit 5; }
  # The payment is forgotten after its page is written.
  [ "$isDelivered" = 0 ] || removeKept
  [ -z "${receipt:-}" ] || echo "$receipt"
  : > "$work/said"
  if [[ $status == 2* ]]; then exit 0; fi
  exit 1
}
# Another payment may have taken the place of this one.
removeKept() {
  [ ! -e "$file" ] || flat < "$file" > "$work/stored"
  [ "$(pick stored .payment)" != "$payment" ] || rm -f "$file"
}
# Sends the kept payment until its answer is known; returns 0 if it is delivered, 1 if it is refused. An unknown answer
# ends the script: no other payment is signed for it.
send() {
  local cuts=0 attempt wait reason why
  for ((attempt = 1; ; attempt++)); do
    wait=1 receipt=""
    if request -H "payment-signature: $payment" 2> "$work/error"; then
      receipt=$(header payment-response | base64 -d 2> /dev/null | tr -d '\0' || true)
      printf %s "$receipt" | flat > "$work/receipt"
      : > "$work/terms"
      [ "$status" != 402 ] || readTerms
      # The 409 of a used payment names its reason in the body.
      [ "$status" != 409 ] || flat < "$work/page" > "$work/terms"
      reason=$(pick receipt .errorReason)
      [ -n "$reason" ] || reason=$(pick terms .error)
      reason=$(printf %.300s "$reason" | tr '\000-\037\177' ' ')
      if [[ $status == 2* ]]; then
        isDelivered=1
        return 0
      fi
      [[ $status =~ ^(5|408|425|429) || $reason =~ settlement_pending|status_unknown|temporarily_unavailable ]] ||
        return 1
      # 503 comes from a seller that waits for the ledger; others from a gateway or seller that lost its answer.
      if [[ $status == 5* && $status != 503 ]]; then cuts=$((cuts + 1)); else cuts=0; fi
      why="the seller answers $status $reason"
      wait=$(header retry-after)
      [[ $wait =~ ^[1-9][0-9]?$ ]] || wait=1
      if [ "$wait" -gt 30 ]; then wait=30; fi
    else
      cuts=$((cuts + 1)) why="the answer was lost ($(tail -n1 "$work/error"))"
    fi
    if [ "$cuts" -ge 3 ] || [ "$attempt" -ge 20 ]; then
      say "$why; the payment may have landed and is kept: send the same one again"
      say "payment: $payment"
      say "resume:  pay.sh --resume $file"
      exit 4
    fi
    sleep "$wait"
  done
}
isSpent() {
  [[ "$(pick receipt .errorReason) $(pick terms .error)" =~ already_settled|authorization_spent|payment_already_used ]]
}

# 1. Send a kept payment of the same call again.
bodyHash=$({ [ ! -e "$work/body" ] || cat "$work/body"; } | openssl dgst -sha256 -binary | hex)
key=$(printf '%s\n%s\n%s\n%s\n' "$payer" "$method" "$url" "$bodyHash" | openssl dgst -sha256 -binary | hex)
file="$folder/$key.json"
[ -z "$resumed" ] || file=$(cd "$(dirname "$resumed")" && pwd)/$(basename "$resumed")
after=0 status="" receipt="" earlier="" isDelivered=0
if [ -e "$file" ]; then
  flat < "$file" > "$work/kept"
  payment=$(kept .payment) after=$(kept .expires) earlier=$payment
  [[ $payment =~ ^[A-Za-z0-9+/=]+$ && ${after:=0} =~ $whole ]] || refuse "$file is no kept payment"
  if send || isSpent || [ -n "$resumed" ]; then finishWith; fi
fi

# 2. The terms.
if [ "$status" != 402 ]; then
  request || refuse "$url does not answer"
  [ "$status" = 402 ] || finishWith
  readTerms
fi
[ -n "$(pick terms '.accepts[0]')" ] || refuse "the 402 has no terms, neither in its header nor in its body"
case "$wanted" in
  stellar:testnet | ledger:testnet)
    usual="CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
    usual+=" CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC" ;;
  stellar:pubnet | ledger:pubnet)
    usual="CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75"
    usual+=" CAS3J7GYLGXMF6TDJBBYYSE3HQ6BBSMLNUQ34T6TZMYMW2EVH34XOWMA" ;;
  *) usual="" ;;
esac
# The limit in an asset; a plain limit applies only to the first asset.
limitOf() {
  local known=${ASSETS:-$usual} most=${MAX_AMOUNT:-1000000} one
  if [[ $most != *=* ]]; then
    if [ "$1" = "${known%% *}" ]; then echo "$most"; fi
    return
  fi
  for one in $most; do if [ "$1" = "${one%%=*}" ]; then echo "${one#*=}"; fi; done
}
# Reads an option; `why` is the reason why it is not paid.
consider() {
  local name
  why=""
  for name in scheme network asset amount payTo maxTimeoutSeconds; do
    declare -g "$name=$(pick terms ".accepts[$1].$name")"
    # A member of the same name in `extra` could be read instead.
    [ -n "${!name}" ] && [ -z "$(pick terms ".accepts[$1].extra.$name")" ] ||
      { why="the terms have no $name, or two" && return; }
  done
  [ "$network" = "$wanted" ] || { why="the terms are for another network" && return; }
  [ "$scheme" = exact ] || { why="$scheme is no scheme of this buyer" && return; }
  [[ $asset =~ ^C[A-Z2-7]{55}$ && " ${ASSETS:-$usual} " == *" $asset "* ]] ||
    { why="the asset is not one to pay in" && return; }
  local most
  most=$(limitOf "$asset")
  [[ $most =~ ^[0-9]{1,18}$ ]] || { why="MAX_AMOUNT has no limit in $asset" && return; }
  [[ $amount =~ ^[1-9][0-9]{0,17}$ ]] && ((amount <= 10#$most)) || { why="the price is above the limit" && return; }
  [[ $maxTimeoutSeconds =~ $whole ]] || { why="the terms' time is no number" && return; }
  ((maxTimeoutSeconds >= 1 && maxTimeoutSeconds <= 300)) || why="the terms' time is not of 1 to 300 seconds"
}
first=""
for ((at = 0; at < 32; at++)); do
  accepted=$(pick terms ".accepts[$at]")
  [ -n "$accepted" ] || refuse "$first"
  consider "$at"
  [ -n "$why" ] || break
  # Prefer the reason for an option of the wanted network.
  if [ -z "$first" ] || [[ $first == *network && $why != *network ]]; then first=$why; fi
done
[ -z "$why" ] || refuse "$first"

# The bytes to sign, according to the facilitator.
curl -sS --fail-with-body -o "$work/answer" "$facilitator/prepare" -H 'content-type: application/json' \
  -d "{\"x402Version\":2,\"payer\":\"$payer\",\"paymentRequirements\":$accepted}" ||
  refuse "$(cat "$work/answer" 2> /dev/null || echo "$facilitator does not answer")"
flat < "$work/answer" > "$work/given"
nonce=$(pick given .nonce) expiry=$(pick given .expires.ledger) newest=$(pick given .expires.latestLedger) apart=0
if [ -n "${LEDGER_RPC_URL:-}" ]; then
  curl -sS -o "$work/answer" "$LEDGER_RPC_URL" -H 'content-type: application/json' \
    -d '{"jsonrpc":"2.0","id":1,"method":"getLatestLedger"}' || refuse "$LEDGER_RPC_URL does not answer"
  flat < "$work/answer" > "$work/rpc"
  newest=$(pick rpc .result.sequence) apart=3
fi
[[ $nonce =~ ^(0|-?[1-9][0-9]{0,18})$ && $expiry =~ $whole && $newest =~ $whole ]] ||
  refuse "the facilitator's answer is incomplete"
((newest > after)) || refuse "an earlier payment can land until ledger $after; send that one again: --resume $file"
((expiry <= newest + (maxTimeoutSeconds + 4) / 5 + apart)) ||
  refuse "the signature would live longer than the terms say"

# 3. The same bytes from the seller's terms.
contract=$(address "$asset") from=$(address "$payer") to=$(address "$payTo")
[ -n "$contract" ] && [ -n "$from" ] && [ -n "$to" ] || exit 3
call="${contract}000000087472616e736665720000000300000012${from}00000012$to"
call+="0000000a$(printf '%032x' "$amount")"
authorized="00000000${call}00000000"
passphrase=$(printf %s "${PASSPHRASE:-Test SDF Network ; September 2015}" | openssl dgst -sha256 -binary | hex)
life=$(printf '%016x%08x' "$nonce" "$expiry")
printf %s "00000009$passphrase$life$authorized" | unhex | openssl dgst -sha256 -binary > "$work/hash"
# The source is all zeros. Before it comes the kind of envelope, after it fee, sequence, and one operation.
zeros=$(printf '%064d' 0)
head="0000000200000000${zeros}00000064000000000000000100000000000000000000000100000000"
head+="0000001800000000"
envelope() {
  printf %s "${head}${call}0000000100000001${from}$life$1${authorized}0000000000000000" | unhex | base64 -w0
}
[ "$(pick given .toSign.hash)" = "$(hex < "$work/hash")" ] &&
  [ "$(pick given .transaction)" = "$(envelope 00000001)" ] ||
  refuse "the facilitator asks for another signature than the terms do"

# 4. The signature, in the form of an account with one key.
signature=$(openssl pkeyutl -sign -inkey "$BUYER_KEY" -rawin -in "$work/hash" | hex)
value="000000100000000100000001000000110000000100000002"
value+="0000000f0000000a7075626c69635f6b65790000"
value+="0000000d00000020$(publicKey "$BUYER_KEY")0000000f000000097369676e6174757265000000"
value+="0000000d00000040$signature"

# 5. The payment, kept before it is sent.
resource=$(pick terms .resource) extensions=$(pick terms .extensions)
info=$(pick terms .extensions.payment-identifier.info)
if [ "$(pick terms .extensions.payment-identifier.info.required)" = true ] &&
  [ -z "$(pick terms .extensions.payment-identifier.info.id)" ]; then
  named="{\"id\":\"$(openssl rand -hex 16)\",${info:1}"
  extensions="${extensions%%"$info"*}$named${extensions#*"$info"}"
fi
payment=$(printf '{"x402Version":2,"payload":{"transaction":"%s"},"accepted":%s%s%s}' \
  "$(envelope "$value")" "$accepted" "${resource:+,\"resource\":$resource}" \
  "${extensions:+,\"extensions\":$extensions}" | base64 -w0)
quoted() { printf '"%s"' "$(printf %s "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }
isNew=$([ -d "$folder" ] || echo 1)
mkdir -p -m 700 "$folder"
draft=$(mktemp "$folder/draft.XXXXXX")
{
  printf '{"method":%s,"url":%s,"headers":{' "$(quoted "$method")" "$(quoted "$url")"
  comma=""
  for one in ${headers[@]+"${headers[@]}"}; do
    printf '%s%s:%s' "$comma" "$(quoted "${one%%:*}")" "$(quoted "$(sed 's/^[^:]*: *//' <<< "$one")")" && comma=,
  done
  printf '},'
  [ ! -e "$work/body" ] || printf '"body":"%s",' "$(base64 -w0 < "$work/body")"
  printf '"payment":"%s","expires":%s}' "$payment" "$expiry"
} > "$draft"
sync "$draft"
[ ! -e "$file" ] || payment=$earlier removeKept
# A link never replaces a payment that another call has stored in between.
ln "$draft" "$file" 2> /dev/null || { flat < "$file" > "$work/kept" && payment=$(kept .payment); }
rm -f "$draft"
# A crash of the machine loses a new name until its folder is on the disk, and a new folder until its parents are.
if [ -n "$isNew" ]; then sync; else sync "$folder"; fi
send || true
finishWith
