// Fetches receipts with new proofs from a facilitator, for its caller with an API key, or for payer or payee by a
// signed challenge. We sign only a challenge that names the host that we asked, our account and this purpose, so a
// facilitator cannot relay the challenge of another one. A stored receipt is fetched again by its transaction, such as
// after a rotation of the log's key.
import { Keypair } from "@stellar/stellar-sdk/base"
import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { readKept } from "../examples/receipts/check.mjs"

export interface FetchOptions {
  /** Transactions as 64 hex digits, or files with stored receipts; NAME.jsonl has one a line. */
  readonly places: ReadonlyArray<string>
  /** Address of the facilitator. */
  readonly url: string
  /** File with the seed (S…) of payer or payee, or with an API key of the seller. */
  readonly secretFile?: string | undefined
}

interface StoredPayment {
  readonly transaction: string
  readonly receipt?: string | undefined
}

const requestTimeoutMillis = 10_000
/** A challenge is valid for ten minutes; one answers all requests of five. */
const challengeMillis = 300_000
const triesMax = 20
const pauseMillis = 1_000
const retryAfterSecondsMax = 60

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const transactionOf = (receipt: string): string =>
  JSON.parse(Buffer.from(receipt.split(".")[1] ?? "", "base64url").toString()).transaction

const paymentsIn = async (place: string): Promise<ReadonlyArray<StoredPayment>> => {
  if (/^[0-9a-f]{64}$/i.test(place) && !existsSync(place)) return [{ transaction: place.toLowerCase() }]
  const text = await readFile(place, "utf8")
  const lines = place.endsWith(".jsonl") ? text.split("\n").filter((line) => line.trim() !== "") : [text]
  return lines.map((line) => {
    const { receipt } = readKept(line)
    const transaction = receipt === undefined ? "" : transactionOf(receipt)
    if (!/^[0-9a-f]{64}$/.test(transaction)) throw new Error(`${place} has a line without a receipt`)
    return { transaction, receipt }
  })
}

/** Plain HTTP only on this machine. A redirect is refused, because another host would receive the signature. */
const ask = async (url: string, init: RequestInit): Promise<Response> => {
  for (let tries = 1; ; tries++) {
    const answer = await fetch(url, {
      ...init,
      headers: { "content-type": "application/json", ...init.headers },
      redirect: "error",
      signal: AbortSignal.timeout(requestTimeoutMillis)
    })
    if (answer.status !== 429 || tries === triesMax) return answer
    await pause(Math.min(Number(answer.headers.get("retry-after")) || 1, retryAfterSecondsMax) * 1_000)
  }
}

const challengeForm = /^Tollkeeper at (\S+): (\S+) reads its receipts on (\S+) until (\S+) by \S+ \S+$/

/** SEP-53: the signature of a wallet over a text. */
const signText = (pair: Keypair, text: string): string =>
  Buffer.from(pair.sign(createHash("sha256").update(`Stellar Signed Message:\n${text}`).digest())).toString("base64")

/** Requests a challenge of this host for this account, and signs it. */
const answerChallenge = async (url: string, pair: Keypair) => {
  const account = pair.publicKey()
  const answer = await ask(`${url}/receipts/challenge`, { method: "POST", body: JSON.stringify({ account }) })
  const { challenge, message } = (await answer.json()) as { readonly challenge?: string; readonly message?: string }
  if (challenge === undefined) throw new Error(`${url} gave no challenge: ${answer.status} ${message ?? ""}`)
  const [, host, named] = challengeForm.exec(challenge) ?? []
  if (host !== new URL(url).host || named !== account)
    throw new Error(`not signed: ${url} asks for a signature of ${JSON.stringify(challenge.slice(0, 200))}`)
  return JSON.stringify({ account, challenge, signature: signText(pair, challenge) })
}

/** Request options for each receipt: an API key, or a signed challenge that is renewed in time. */
const credentialOf = (url: string, secret: string | undefined): (() => Promise<RequestInit>) => {
  if (secret === undefined) return async () => ({})
  const isSeed = /^S[A-Z2-7]{55}$/.test(secret)
  // Any other text is sent to the facilitator, as an API key.
  if (!isSeed && /S[A-Z2-7]{55}/.test(secret))
    throw new Error("nothing was sent: the secret file has a seed beside other text; name a file with one seed alone")
  if (!isSeed) return async () => ({ headers: { authorization: `Bearer ${secret}` } })
  const pair = Keypair.fromSecret(secret)
  let signed: { readonly body: Promise<string>; readonly at: number } | undefined
  return async () => {
    if (signed === undefined || performance.now() - signed.at > challengeMillis)
      signed = { body: answerChallenge(url, pair), at: performance.now() }
    return { method: "POST", body: await signed.body }
  }
}

/** Yields the answer of each receipt as one line of JSON. Throws at the first receipt that cannot be fetched. */
export async function* fetchReceipts({ places, secretFile, url: address }: FetchOptions): AsyncGenerator<string> {
  const { hostname, origin, protocol } = new URL(address)
  if (protocol !== "https:" && !/^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname))
    throw new Error(`${address} is not https: others would see the receipts`)
  const secret = secretFile === undefined ? undefined : (await readFile(secretFile, "utf8")).trim()
  const credential = credentialOf(origin, secret)
  for (const { receipt, transaction } of (await Promise.all(places.map(paymentsIn))).flat()) {
    for (let tries = 1; ; tries++) {
      const answer = await ask(`${origin}/receipts/${transaction}?proof=1`, await credential())
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${transaction}: ${answer.status} ${text.slice(0, 300)}`)
      const read = JSON.parse(text)
      if (receipt !== undefined && read.receipt !== receipt)
        throw new Error(`${transaction}: the facilitator has another receipt now; keep yours, it is evidence`)
      if (read.transaction !== transaction) throw new Error(`${transaction}: the answer is of another transaction`)
      const isProven = read.outcomes.length > 0 && read.outcomes.every((one: { readonly proof?: unknown }) => one.proof)
      if (isProven) yield JSON.stringify(read)
      if (isProven) break
      if (tries === triesMax) throw new Error(`${transaction}: no checkpoint covers it after ${triesMax} s`)
      await pause(pauseMillis)
    }
  }
}
