// The script of the paywall page (`paywall.mjs` puts it into the page as text). It connects a wallet through SEP-43,
// builds the bytes to sign from the terms on the page, has them signed if the facilitator's bytes are equal, and
// requests the page with the payment. It stores the payment before sending, for every tab. While the payment's end is
// unknown, it sends the same payment again and never another; a reload opens the page with it. It runs in a browser and
// imports nothing from this project.

/* global document, window, location, fetch, crypto, Blob, URL, setTimeout, clearTimeout, AbortSignal, navigator */
const given = JSON.parse(document.getElementById("required").textContent)
const { accepted, prepareUrl, required } = given
const say = (text, isError = false) => {
  const line = document.getElementById("say")
  line.textContent = text
  line.className = isError ? "error" : ""
}

const passphrases = {
  testnet: "Test SDF Network ; September 2015",
  pubnet: "Public Global Stellar Network ; September 2015"
}
const networkPassphrase = passphrases[accepted.network.split(":")[1]]

/** Freighter through its public messages; `messagedId` is Freighter's spelling. */
const askFreighter = (type, more = {}, patience = 600_000) =>
  new Promise((resolve, reject) => {
    const messageId = Date.now() + Math.random()
    const late = setTimeout(() => reject(new Error("The wallet does not answer. Open it, then pay again.")), patience)
    const read = ({ data, source }) => {
      if (source !== window || data?.source !== "FREIGHTER_EXTERNAL_MSG_RESPONSE" || data.messagedId !== messageId)
        return
      window.removeEventListener("message", read)
      clearTimeout(late)
      const error = data.apiError ?? data.error
      if (error) reject(new Error(error.message ?? String(error)))
      else resolve(data)
    }
    window.addEventListener("message", read)
    window.postMessage({ source: "FREIGHTER_EXTERNAL_MSG_REQUEST", messageId, type, ...more }, location.origin)
  })

/** A SEP-43 wallet: the page's own, else Freighter. */
const findWallet = async () => {
  if (window.stellarWallet !== undefined) return window.stellarWallet
  await askFreighter("REQUEST_CONNECTION_STATUS", {}, 2_000)
  return {
    getAddress: async () => ({ address: (await askFreighter("REQUEST_ACCESS")).publicKey }),
    getNetwork: async () => (await askFreighter("REQUEST_NETWORK_DETAILS", {}, 2_000)).networkDetails,
    signAuthEntry: (entryXdr, { address }) =>
      askFreighter("SUBMIT_AUTH_ENTRY", { entryXdr, accountToSign: address, networkPassphrase })
  }
}

/**
 * A wallet of another network signs for that network, and this ledger refuses it. A wallet that does not name its
 * network is asked to sign anyway.
 */
const checkNetwork = async (wallet) => {
  const said = await Promise.resolve(wallet.getNetwork?.()).catch(() => undefined)
  if (said?.networkPassphrase !== undefined && said.networkPassphrase !== networkPassphrase)
    throw new Error(
      `Your wallet is on another network: switch it to ${accepted.network.split(":")[1]}, then pay again.`
    )
}

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
const textOf = (bytes) => btoa(String.fromCharCode(...bytes))
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]))
const u32 = (value) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]
const i64 = (value) =>
  Array.from({ length: 8 }, (_, at) => Number((BigInt.asUintN(64, value) >> BigInt(56 - 8 * at)) & 255n))
const opaque = (bytes) => [...u32(bytes.length), ...bytes, ...Array((4 - (bytes.length % 4)) % 4).fill(0)]
const word = (text) => opaque(new TextEncoder().encode(text))

const address = (text) => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
  let bits = 0n
  for (const letter of text) bits = (bits << 5n) | BigInt(letters.indexOf(letter))
  const key = Array.from({ length: 35 }, (_, at) => Number((bits >> BigInt(8 * (34 - at))) & 255n))
  if (text.length !== 56) throw new Error("an address has another length")
  if (key[0] === 48) return [...u32(0), ...u32(0), ...key.slice(1, 33)]
  if (key[0] === 16) return [...u32(1), ...key.slice(1, 33)]
  throw new Error("an address is neither an account nor a contract")
}

/** The bytes to hash and sign, from the terms on this page (plugins/prepare/README.md). */
const preimageOf = async (payer, nonce, expiry) => {
  const amount = BigInt(accepted.amount)
  const values = [
    ...[payer, accepted.payTo].map((text) => [...u32(18), ...address(text)]),
    [...u32(10), ...i64(amount >> 64n), ...i64(amount)]
  ]
  const call = join(address(accepted.asset), word("transfer"), u32(3), ...values)
  const network = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(networkPassphrase)))
  return join(u32(9), network, i64(BigInt(nonce)), u32(expiry), u32(0), call, u32(0))
}

/** The envelope with a signature instead of the void one: it follows address, nonce and expiry of the entry. */
const withSignature = (prepared, payer, signature) => {
  const [transaction, entry] = [bytesOf(prepared.transaction), bytesOf(prepared.authorizationEntry)]
  const at = transaction.findIndex((_, from) => entry.every((byte, offset) => transaction[from + offset] === byte))
  const account = address(payer)
  const place = at + 4 + account.length + 12
  const fields = [
    ...[...u32(15), ...word("public_key"), ...u32(13), ...opaque(account.slice(8))],
    ...[...u32(15), ...word("signature"), ...u32(13), ...opaque(signature)]
  ]
  const value = [...u32(16), ...u32(1), ...u32(1), ...u32(17), ...u32(1), ...u32(2), ...fields]
  return textOf(join(transaction.slice(0, place), value, transaction.slice(place + 4)))
}

/** The 64 bytes, in any form that wallets return. */
const signatureIn = ({ signedAuthEntry }) => {
  const bytes =
    typeof signedAuthEntry === "string"
      ? bytesOf(signedAuthEntry)
      : Uint8Array.from(signedAuthEntry?.data ?? signedAuthEntry)
  if (bytes.length !== 64) throw new Error("the wallet gave no signature of 64 bytes")
  return bytes
}

const sign = async (wallet, payer) => {
  const asked = await fetch(prepareUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ x402Version: 2, paymentRequirements: accepted, payer })
  })
  const prepared = await asked.json()
  if (!asked.ok) throw new Error(prepared.message ?? prepared.error ?? `the seller answers ${asked.status}`)
  const { latestLedger, ledger } = prepared.expires
  const preimage = textOf(await preimageOf(payer, prepared.nonce, ledger))
  if (preimage !== prepared.toSign.preimage || ledger > latestLedger + Math.ceil(accepted.maxTimeoutSeconds / 5))
    throw new Error("Nothing was signed: another payment was to be signed than this page shows.")
  say("Confirm the payment in your wallet.")
  const signature = signatureIn(await wallet.signAuthEntry(preimage, { networkPassphrase, address: payer }))
  return { transaction: withSignature(prepared, payer, signature), ledger }
}

const show = async ({ body, response }) => {
  const kind = response.headers.get("content-type") ?? ""
  const content = document.getElementById("content")
  if (/json|text\/plain/.test(kind)) {
    const page = document.createElement("pre")
    page.textContent = await body.text()
    content.append(page)
    return
  }
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([body], { type: kind }))
  link.textContent = "Open what you bought"
  content.append(link)
}

/** Undefined if a visitor forbids storage. */
const storage = (() => {
  try {
    return window.localStorage
  } catch {
    return undefined
  }
})()
const place = `x402 ${location.pathname}${location.search}`
const dayMillis = 86_400_000
/** The payment of this page, in every tab; a delivered payment can read its page for a day. */
const kept = () => {
  const text = storage?.getItem(place) ?? null
  const payment = text === null ? undefined : JSON.parse(text)
  return payment?.paidAt < Date.now() - dayMillis ? undefined : payment
}
const keep = (payment) => storage.setItem(place, JSON.stringify(payment))

const decoded = (header) => {
  try {
    return header === null ? undefined : JSON.parse(atob(header))
  } catch {
    return undefined
  }
}

/** The whole answer; undefined if it was lost. */
const ask = async (encoded) => {
  try {
    const signal = AbortSignal.timeout(60_000)
    const response = await fetch(location.href, { headers: { "payment-signature": encoded }, signal })
    return { response, body: await response.blob() }
  } catch {
    return undefined
  }
}

/** The reason in the JSON of a 409, which refuses a used payment. */
const usedReason = async ({ body, response }) => {
  if (response.status !== 409) return ""
  try {
    return String(JSON.parse(await body.text()).error)
  } catch {
    return ""
  }
}

/** Sends the kept payment until its answer is known, or three answers in a row were lost. */
const send = async (encoded) => {
  for (let attempt = 1, lost = 0; ; attempt++) {
    const answer = await ask(encoded)
    const status = answer?.response.status ?? 504
    const receipt = decoded(answer?.response.headers.get("payment-response") ?? null)
    const asked = decoded(answer?.response.headers.get("payment-required") ?? null)
    const reason = receipt?.errorReason ?? asked?.error ?? (answer === undefined ? "" : await usedReason(answer))
    const isPending = /settlement_pending|status_unknown|temporarily_unavailable/.test(reason)
    if (answer?.response.ok || !(status >= 500 || status === 408 || status === 429 || isPending))
      return { ...answer, receipt, reason }
    lost = status >= 500 && status !== 503 ? lost + 1 : 0
    if (lost === 3 || attempt === 20) return undefined
    say("The payment is on its way; waiting for the ledger.")
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

/** Whether the last ledger of a kept payment has closed, so that it can never be paid any more. */
const isOver = async ({ ledger, payer }) => {
  const asked = await fetch(prepareUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ x402Version: 2, paymentRequirements: accepted, payer })
  }).catch(() => undefined)
  const prepared = asked?.ok ? await asked.json() : undefined
  return Number.isSafeInteger(ledger) && prepared?.expires?.latestLedger > ledger
}

const button = document.getElementById("pay")
const price = button.textContent

/** Sends the kept payment and shows the page. Offers a new payment only after the old one's end is proven. */
const deliver = async () => {
  const payment = kept()
  const answer = await send(payment.encoded)
  button.textContent = "Send the same payment again"
  if (answer === undefined)
    throw new Error("The answer was lost. You may have paid. Try again: the same payment is sent, never a second one.")
  const { reason, receipt, response } = answer
  if (response.ok) {
    keep({ ...payment, paidAt: payment.paidAt ?? Date.now() })
    say(receipt?.transaction ? `Paid. Receipt ${receipt.transaction}` : "Paid.")
    button.hidden = true
    return show(answer)
  }
  const why = receipt?.errorMessage ?? (reason || response.status)
  if (payment.paidAt === undefined && (receipt?.success || /already_settled|authorization_spent/.test(reason)))
    throw new Error(
      `You have paid, and the seller does not give the page: ${why}. Receipt ${receipt?.transaction ?? ""}`
    )
  if (payment.paidAt === undefined && /payment_already_used/.test(reason))
    throw new Error(
      "The seller says that this payment paid for another page. Ask the seller; no second one is offered."
    )
  if (!(await isOver(payment)))
    throw new Error(
      `The seller refused the payment: ${why}. It can still be used for a while; no second one is offered.`
    )
  storage.removeItem(place)
  button.textContent = price
  const isNew = payment.paidAt === undefined
  const past = isNew ? "Not paid, and the payment has expired" : "Your payment does not open it again"
  throw new Error(`${past}: ${why}. You can pay again.`)
}

/** Signs and keeps one payment. */
const signOne = async () => {
  say("Searching for a wallet.")
  const wallet = await findWallet().catch(() => {
    document.getElementById("way").hidden = false
    throw new Error("No Stellar wallet was found. Install Freighter, then load this page again.")
  })
  const { address: payer, error } = await wallet.getAddress()
  if (!payer) throw new Error(error?.message ?? "The wallet shared no account.")
  if (!payer.startsWith("G")) throw new Error("This wallet pays from a contract; choose an account that begins with G.")
  await checkNetwork(wallet)
  say("Preparing the payment.")
  const { ledger, transaction } = await sign(wallet, payer)
  const { extensions, resource } = required
  const more = { resource, accepted, ...(extensions === undefined ? {} : { extensions: echoed(extensions) }) }
  const payment = { x402Version: 2, payload: { transaction }, ...more }
  const encoded = textOf(new TextEncoder().encode(JSON.stringify(payment)))
  keep({ encoded, ledger, payer })
}

/** A payment's identifier, if the seller requires one. */
const echoed = (extensions) => {
  const declared = extensions["payment-identifier"]
  if (declared?.info?.required !== true || declared.info.id !== undefined) return extensions
  const id = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("")
  return { ...extensions, "payment-identifier": { ...declared, info: { ...declared.info, id } } }
}

const buy = async (isHeld) => {
  if (isHeld === null) throw new Error("Another tab of yours is paying for this page: wait for it.")
  if (storage === undefined) throw new Error("Allow this page to store data: it keeps your payment until its answer.")
  if (kept() === undefined) await signOne()
  say("Paying.")
  await deliver()
}

/** Runs one action at a time in all tabs of a visitor. */
const act = async () => {
  button.disabled = true
  try {
    if (navigator.locks === undefined) await buy()
    else await navigator.locks.request(place, { ifAvailable: true }, buy)
  } catch (error) {
    say(error.message, true)
    button.disabled = false
  }
}
document.getElementById("domain").textContent = location.host
if (window !== window.top) {
  button.disabled = true
  say("Open this page in a window of its own to pay.", true)
} else {
  button.addEventListener("click", act)
  if (kept() !== undefined) await act()
}
