// Acts as a buyer against any x402 seller, and reports its problems: the 402 and its terms, foreign headers, an
// underpaid payment, a paid one, the same one again, five concurrent ones, and one with a lost answer. It makes at most
// 3 payments of the seller's price, from the caller's account; without an account, it runs only the checks that need no
// payment.
import { Buffer } from "node:buffer"
import { randomBytes } from "node:crypto"
import { findFacilitator } from "./findFacilitator.ts"
import { decode, encode, follow, isSpent, requestOf, requiredBy } from "./client/keptPayments.mjs"
import { accountOf, seedOf, strkey } from "./client/preparedBytes.mjs"
import { type Options, signUntil, type Terms } from "./client/preparedSign.mjs"

/** `mend`: a buyer or the seller can lose money or a page; `hint`: some buyers cannot pay. */
export interface SellerCheck {
  readonly name: string
  readonly result: "ok" | "hint" | "mend" | "skipped"
  readonly words: string
}

export interface SellerOrder {
  readonly url: string
  readonly method?: string
  readonly body?: string
  /** The buyer's seed and limits; absent: nothing is paid. */
  readonly buyer?: Options
}

const answerMillis = 30_000
/** Delay before a connection is cut, milliseconds, so that its request arrives. */
const cutMillis = 30
const pendingMax = 30

interface ParsedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly receipt: any
  readonly reason: string
}

const readAnswer = async (answer: Response): Promise<ParsedAnswer> => {
  const required = answer.status === 402 ? await requiredBy(answer) : undefined
  const receipt = decode(answer.headers.get("payment-response"))
  const reason = String(receipt?.errorReason ?? required?.error ?? "")
  const { headers, status } = answer
  return { status, headers, text: Buffer.from(await answer.arrayBuffer()).toString("base64"), receipt, reason }
}

const isPaid = ({ status }: ParsedAnswer): boolean => status >= 200 && status < 300

class SellerProbe {
  readonly checks: Array<SellerCheck> = []
  readonly #order: SellerOrder

  constructor(order: SellerOrder) {
    this.#order = order
  }

  note(name: string, result: SellerCheck["result"], words: string): void {
    this.checks.push({ name, result, words })
  }

  async ask(headers: Record<string, string> = {}, url = this.#order.url, signal?: AbortSignal): Promise<Response> {
    const { body, method } = requestOf(url, this.#order)
    const limit = AbortSignal.timeout(answerMillis)
    return follow(url, {
      method,
      headers,
      signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
      ...(body === undefined || method === "GET" ? {} : { body: Buffer.from(body) })
    })
  }

  /** The answer to a payment; repeats the request while it is pending. */
  async send(payment: string, url?: string): Promise<ParsedAnswer> {
    for (let attempt = 1; ; attempt++) {
      const given = await readAnswer(await this.ask({ "payment-signature": payment }, url))
      const isPending = given.status === 503 || /settlement_pending|status_unknown/.test(given.reason)
      if (!isPending || attempt === pendingMax) return given
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
  }

  /** The 402 and its terms; undefined if no check can follow. */
  async terms(): Promise<any> {
    const unpaid = await this.ask()
    if (unpaid.status !== 402) {
      this.note("402", "mend", `without a payment it answers ${unpaid.status}; answer 402 with terms`)
      return undefined
    }
    this.note("402", "ok", "an unpaid request is answered 402")
    const required = decode(unpaid.headers.get("payment-required"))
    const body: any = await unpaid.json().catch(() => undefined)
    if (required?.x402Version === 2 && Array.isArray(required.accepts)) this.note("version 2", "ok", "PAYMENT-REQUIRED")
    else this.note("version 2", "mend", "send the terms as base64 of JSON in the header PAYMENT-REQUIRED")
    const isRead = Array.isArray(body?.accepts) && body.accepts.length > 0
    if (isRead) this.note("body", "ok", `terms of version ${body.x402Version} in the body`)
    else this.note("body", "hint", "buyers that read the body find no terms: send them there, too")
    const found = Array.isArray(required?.accepts) ? required : isRead ? body : undefined
    if (found === undefined || found.accepts.length === 0)
      this.note("terms", "mend", "the 402 offers nothing to accept")
    else for (const [at, one] of found.accepts.entries()) this.#checkTerms(`terms ${at}`, one)
    return found
  }

  #checkTerms(name: string, terms: any): void {
    const isStellar = /^(stellar|ledger):/.test(String(terms?.network))
    const issues: Array<string> = []
    for (const member of ["scheme", "network", "asset", "payTo"])
      if (typeof terms?.[member] !== "string" || terms[member] === "") issues.push(`${member} is no text`)
    if (!/^[1-9][0-9]{0,38}$/.test(String(terms?.amount ?? terms?.maxAmountRequired)))
      issues.push("amount is not a positive whole number of atomic units, as text")
    const seconds = terms?.maxTimeoutSeconds
    if (!Number.isSafeInteger(seconds) || seconds < 1) issues.push("maxTimeoutSeconds is no number of seconds")
    for (const member of isStellar ? ["asset", "payTo"] : [])
      try {
        strkey(String(terms[member]))
      } catch (error) {
        issues.push(`${member}: ${(error as Error).message}`)
      }
    this.note(name, issues.length === 0 ? "ok" : "mend", issues.join("; ") || `${terms.scheme} on ${terms.network}`)
    if (seconds > 300) this.note(name, "hint", `a signature lives for ${seconds} seconds; many buyers sign for 300`)
  }

  /** Checks access by browsers of other origins. */
  async crossOrigin(): Promise<void> {
    const { headers } = await this.ask({ origin: "https://buyer.example" })
    const exposed = headers.get("access-control-expose-headers") ?? ""
    const isOpen = headers.has("access-control-allow-origin") && /payment-required/i.test(exposed)
    const words = "pages of other origins cannot pay: allow them, and expose PAYMENT-REQUIRED and PAYMENT-RESPONSE"
    this.note("cross-origin", isOpen ? "ok" : "hint", isOpen ? "pages of other origins can pay" : words)
  }

  async hostileHeaders(): Promise<void> {
    const values = ["%%%", encode(null), encode([]), encode({}), encode({ x402Version: 2, payload: "text" })]
    const deep = `${"[".repeat(5_000)}`
    const bad: Array<string> = []
    for (const value of [...values, encode({ x402Version: 2, payload: {}, accepted: {} }), encode(deep)]) {
      const status = await this.ask({ "payment-signature": value }).then((answer) => answer.status)
      if (status >= 500 || status < 400) bad.push(`${status} to ${value.slice(0, 24)}`)
    }
    const words = `it answers ${bad.join(", ")}; answer 402 to every header that is no payment`
    this.note("hostile headers", bad.length === 0 ? "ok" : "mend", bad.length === 0 ? "each is refused" : words)
  }

  /** Signs a payment by these terms, as a header. */
  async sign(required: any, accepted: Terms, buyer: Options): Promise<string> {
    const { payload } = await signUntil(accepted, buyer)
    const { extensions, resource } = required
    return encode({ x402Version: 2, payload, resource, accepted, ...(extensions && { extensions }) })
  }
}

/** Sends one payment, the same one again, elsewhere, and with another body. */
const checkRepeats = async (probe: SellerProbe, order: SellerOrder, payment: string): Promise<boolean> => {
  const first = await probe.send(payment)
  if (!isPaid(first)) {
    probe.note("payment", "mend", `a good payment is answered ${first.status} ${first.reason}`)
    return false
  }
  probe.note("payment", "ok", `paid: ${first.receipt?.transaction ?? "no receipt"}`)
  if (first.receipt?.success !== true) probe.note("receipt", "mend", "send PAYMENT-RESPONSE with the settlement")
  const again = await probe.send(payment)
  if (isPaid(again) && again.text === first.text) probe.note("same payment again", "ok", "the same page is given again")
  else if (isPaid(again))
    probe.note("same payment again", "mend", "one payment buys the work twice: store what was sold")
  else {
    const words = `it is refused (${again.status} ${again.reason}): a lost answer is a lost page; store what was sold`
    probe.note("same payment again", isSpent(again.reason) ? "hint" : "mend", words)
  }
  const other = new URL(order.url)
  other.searchParams.set("check", "another")
  const elsewhere = await probe.send(payment, other.href)
  const isOther = isPaid(elsewhere) && elsewhere.text !== first.text
  const words = isOther ? "one payment opens another page: bind it to the request" : "it opens no other page"
  probe.note("payment elsewhere", isOther ? "mend" : "ok", words)
  return true
}

const checkFive = async (probe: SellerProbe, payment: string): Promise<void> => {
  const given = await Promise.all(Array.from({ length: 5 }, () => probe.send(payment)))
  const pages = new Set(given.filter(isPaid).map(({ text }) => text))
  const hashes = new Set(given.flatMap(({ receipt }) => (receipt?.success === true ? [receipt.transaction] : [])))
  const last = pages.size === 0 ? await probe.send(payment) : undefined
  if (pages.size > 1 || hashes.size > 1)
    probe.note("five together", "mend", `one payment gave ${pages.size} pages: serve a payment's requests one by one`)
  else if (pages.size === 0 && !isPaid(last!))
    probe.note("five together", "mend", `none of five got the page (${last!.status} ${last!.reason})`)
  else probe.note("five together", "ok", "one page")
}

const checkLost = async (probe: SellerProbe, payment: string): Promise<void> => {
  const cut = new AbortController()
  const lost = probe.ask({ "payment-signature": payment }, undefined, cut.signal).catch(() => undefined)
  await new Promise((resolve) => setTimeout(resolve, cutMillis))
  cut.abort()
  await lost
  const again = await probe.send(payment)
  if (isPaid(again)) probe.note("lost answer", "ok", "the same payment gets the page")
  else {
    const words = `after a lost answer the same payment is answered ${again.status} ${again.reason}`
    probe.note("lost answer", "mend", `${words}: the buyer has paid for nothing; store what was sold`)
  }
}

/** The services for the buyer's payments; `found` defaults to this machine's facilitator and its ledger. */
export interface Places {
  readonly facilitator: string | undefined
  readonly ledger: string | undefined
  readonly network: string
  readonly maxAmount: bigint
  /** The seed that pays; absent: a new account of a ledger with a friendbot. */
  readonly secret: string | undefined
}

/** The paying account; undefined without one. */
export const findBuyer = async ({ maxAmount, network, secret, ...named }: Places): Promise<Options | undefined> => {
  const found = named.facilitator === undefined ? await findFacilitator() : undefined
  const facilitator = named.facilitator ?? found?.facilitator
  const ledger = named.ledger ?? found?.ledger
  if (facilitator === undefined) return undefined
  const seed = secret ?? seedOf(randomBytes(32))
  const buyer = { secret: seed, facilitator, network, maxAmount, ...(ledger === undefined ? {} : { rpcUrl: ledger }) }
  if (secret !== undefined) return buyer
  if (ledger === undefined) return undefined
  const funded = await fetch(`${ledger}/friendbot?addr=${accountOf(seed).account}&usdc=1`).catch(() => undefined)
  return funded?.ok === true ? buyer : undefined
}

/** Every check, in order. An unreachable seller rejects. */
export const checkSeller = async (order: SellerOrder): Promise<ReadonlyArray<SellerCheck>> => {
  const probe = new SellerProbe(order)
  const required = await probe.terms()
  await probe.crossOrigin()
  await probe.hostileHeaders()
  const { buyer } = order
  const network = buyer?.network ?? "stellar:testnet"
  const accepted = required?.accepts?.find((one: any) => one.scheme === "exact" && one.network === network)
  if (buyer === undefined || accepted === undefined) {
    const why = buyer === undefined ? "no account pays" : `it offers no exact payment on ${network}`
    probe.note("payments", "skipped", `not checked: ${why}`)
    return probe.checks
  }
  const payment = await probe.sign(required, accepted, buyer).catch((error: Error) => error)
  if (typeof payment !== "string") {
    const why = "asset, trustline of payTo, price and lifetime decide it"
    probe.note("asset and recipient", "mend", `no payment by these terms can succeed (${why}): ${payment.message}`)
    return probe.checks
  }
  probe.note("asset and recipient", "ok", "the facilitator's simulation pays")
  if (!(await checkRepeats(probe, order, payment))) return probe.checks
  await checkFive(probe, await probe.sign(required, accepted, buyer))
  await checkLost(probe, await probe.sign(required, accepted, buyer))
  const price = BigInt(accepted.amount)
  const cheap = price > 1n ? { ...accepted, amount: String(price - 1n) } : undefined
  const cheaper = cheap && (await probe.sign(required, cheap, buyer).catch(() => undefined))
  if (cheaper === undefined) probe.note("price below its own", "skipped", "no lower price can be signed")
  else {
    const underpaid = isPaid(await probe.send(cheaper))
    const words = underpaid
      ? "one atom less buys the page: compare the terms with your own"
      : "one atom less is refused"
    probe.note("price below its own", underpaid ? "mend" : "ok", words)
  }
  return probe.checks
}
