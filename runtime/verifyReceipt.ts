// Checks a stored receipt for `tollkeeper receipts verify`: with the published scripts of `examples/receipts/`, and
// with two sources that these scripts cannot use: the ledger for the movement, and the current log. Each check is a
// line of the report; a failing check throws the reason. Nothing here trusts the facilitator beyond its DID document.
import { Networks, xdr } from "@stellar/stellar-sdk/base"
import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import {
  checkAge,
  attestationName,
  checkKept,
  didUrl,
  differingClaims,
  hashText,
  issuerOf,
  openDelivery,
  outcomeOf,
  readKept
} from "../examples/receipts/check.mjs"
import { cosignedAt } from "../examples/receipts/cosign.mjs"
import { openTiles, readKeys, readNewest, readText } from "../examples/receipts/tiles.mjs"
import {
  checkConsistency,
  checkInclusion,
  isInForce,
  openCheckpoint,
  type prove
} from "../examples/receipts/verify.mjs"
import { anchoredHash, sourceOf, transactionIn } from "../kernel/stellar/Envelope.ts"
import { contractEventsIn, readEvent } from "../kernel/stellar/TransferEvents.ts"
import { addressOfKey, attestationSigner, type KeptAttestation } from "./attestationSigner.ts"

export interface VerifyOptions {
  readonly file: string
  /** DID document of the facilitator, a file or URL; otherwise it is resolved from the receipt. */
  readonly did?: string | undefined
  /** The same for the seller, to check its `offer-receipt`. */
  readonly sellerDid?: string | undefined
  /** A Stellar RPC. */
  readonly ledger?: string | undefined
  /** Address of the facilitator; its log is below it. */
  readonly log?: string | undefined
  /** Verifier keys of witnesses, NAME+HASH+KEY; each must have cosigned the log. */
  readonly witnesses?: ReadonlyArray<string> | undefined
  /** Maximum age of the proof's checkpoint, in seconds; with `log`, of the log's newest one, by default a day. */
  readonly maxAge?: number | undefined
  /** Claims that the receipt must have. */
  readonly expected: Readonly<Record<string, string>>
}

interface VerifyReport {
  readonly issuer: string
  readonly claims: Readonly<Record<string, string | number>>
  readonly checks: ReadonlyArray<string>
  /** COMPLETE, UNLINKED, PAYMENT_ONLY, DELIVERY_ONLY, MISMATCH or NOT_FOUND. */
  readonly outcome: string
}

type Kept = ReturnType<typeof readKept>
type Proven = Awaited<ReturnType<typeof prove>>
type Claims = Readonly<Record<string, any>>
/** A log as it is read now. */
interface Log {
  readonly tree: Awaited<ReturnType<typeof openCheckpoint>>
  readonly tiles: ReturnType<typeof openTiles>
}

const requestTimeoutMillis = 10_000

const get = async (url: string): Promise<any> => {
  const answer = await fetch(url, { signal: AbortSignal.timeout(requestTimeoutMillis) })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  return answer.json()
}

const readDocument = async (place: string): Promise<any> =>
  /^https?:/.test(place) ? get(place) : JSON.parse(await readFile(place, "utf8"))

const timeText = (seconds: number): string => new Date(seconds * 1_000).toISOString()

const facilitatorAt = (log: string): string => log.replace(/\/+$/, "").replace(/\/log(\/\d+)?$/, "")

const askRpc = async (url: string, method: string, params: object): Promise<any> => {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    signal: AbortSignal.timeout(requestTimeoutMillis)
  })
  const { error, result } = (await answer.json()) as any
  if (error !== undefined) throw new Error(`the ledger answered ${error.message}`)
  return result
}

const passphrases: Readonly<Record<string, string>> = {
  "stellar:pubnet": Networks.PUBLIC,
  "stellar:testnet": Networks.TESTNET
}

/** Asks one RPC for the transaction and compares its network, ledger, close time, fee and movement with the receipt. */
const askLedger = async (url: string, claims: Claims): Promise<string> => {
  const { passphrase } = await askRpc(url, "getNetwork", {})
  if (passphrase !== passphrases[claims["network"]])
    throw new Error(`the ledger is of "${passphrase}", the receipt of ${claims["network"]}`)
  const result = await askRpc(url, "getTransaction", { hash: claims["transaction"] })
  if (result.status === "NOT_FOUND")
    throw new Error(`the ledger does not have the transaction; its history begins at ledger ${result.oldestLedger}`)
  if (result.status !== "SUCCESS") throw new Error(`the ledger says that the transaction is ${result.status}`)
  if (result.ledger !== claims["ledger"] || Number(result.createdAt) !== claims["closedAt"])
    throw new Error(`the ledger has the transaction in ledger ${result.ledger}, closed at ${result.createdAt}`)
  const charged = String(xdr.TransactionResult.schema.decode(Buffer.from(result.resultXdr, "base64")).feeCharged)
  if (charged !== claims["fee"]) throw new Error(`the ledger charged ${charged}, the receipt says ${claims["fee"]}`)
  const events = contractEventsIn(xdr.TransactionMeta.schema.decode(Buffer.from(result.resultMetaXdr, "base64"))) ?? []
  const isMoved = events.some((event) => {
    const read = readEvent(event)
    if (read._tag !== "Moved") return false
    const { amount, contract, from, to } = read.transfer
    return (
      contract === claims["asset"] &&
      String(amount) === claims["amount"] &&
      (from === claims["payer"] || from === "") &&
      (to === claims["payTo"] || to === "")
    )
  })
  if (!isMoved && claims["amount"] !== "0") throw new Error("the transaction did not move that amount to that payee")
  return `the ledger moved ${claims["amount"]} to ${claims["payTo"]} in ledger ${result.ledger}`
}

/**
 * Reads the current log and checks that it still contains the receipt's leaf and continues the proof's checkpoint. The
 * log's own entries determine which key signs it now; the document only provides the keys.
 */
const askLog = async (
  log: string,
  { leaf, proof }: Proven,
  did: any,
  maxAge: number | undefined
): Promise<Log & { readonly checks: ReadonlyArray<string>; readonly note: string }> => {
  const then = await openCheckpoint(proof.checkpoint, did, NaN)
  const place = `${facilitatorAt(log)}/log/${/\/log\/([^/]+)$/.exec(then.origin)?.[1] ?? 1}`
  const note: string = await readText(place, "checkpoint")
  const now = await openCheckpoint(note, did, NaN)
  if (now.origin !== then.origin) throw new Error(`${place} is ${now.origin}, the proof is of ${then.origin}`)
  if (now.size < then.size)
    throw new Error(
      `${now.origin} went back, from ${then.size} leaves to ${now.size}: see ${facilitatorAt(log)}/log/epochs`
    )
  const tiles = openTiles(place, now.size)
  if ((await tiles.root(0, now.size)) !== now.root) throw new Error("the log's tiles do not match its checkpoint")
  await checkConsistency(then, now, await tiles.consistency(then.size))
  await checkInclusion(now, proof.index, leaf, await tiles.inclusion(proof.index))
  if (!isInForce(await readKeys(place, now, tiles), now.key, Date.now() / 1_000))
    throw new Error(`${now.key.id} signed the log's newest checkpoint, but the log does not list it as in force`)
  const check = `leaf ${proof.index} is in the log of ${now.size}, which continues the one of ${then.size}`
  // An earlier epoch has ended: then the current epoch shows whether the log is frozen.
  const newest = await readNewest(`${facilitatorAt(log)}/log`).catch(() => ({ note }))
  const current = newest.note === note ? now : await openCheckpoint(newest.note, did)
  await checkAge(current, maxAge)
  return { checks: [check, `the log's newest checkpoint is of ${timeText(current.time!)}`], note, tree: now, tiles }
}

/**
 * Passes if the witness cosigned the proof's checkpoint or the log's current one, which continues it. The leaf is then
 * in the same history that the witness has seen.
 */
const askWitness = async (key: string, notes: ReadonlyArray<string>): Promise<string> => {
  const [name] = key.split("+")
  if (notes.length === 0) throw new Error(`there is no proof that the witness ${name} could have cosigned`)
  for (const note of notes) {
    const seconds = await cosignedAt(note, key)
    if (seconds === undefined) continue
    const [, size] = note.split("\n")
    return `the witness ${name} cosigned the log of ${size} at ${timeText(seconds)}`
  }
  throw new Error(`the witness ${name} did not cosign the log's checkpoint`)
}

/**
 * Checks the log's newest anchor, if the document names one: a transaction of the facilitator whose memo is the hash of
 * a checkpoint of this log, which `now` continues.
 */
const askAnchor = async (url: string, did: any, now: Log | undefined): Promise<ReadonlyArray<string>> => {
  const { anchor } = did.service?.find(({ id }: any) => id === `${did.id}#log`) ?? {}
  if (anchor === undefined) return []
  const tree = await openCheckpoint(anchor.checkpoint, did, NaN)
  const result = await askRpc(url, "getTransaction", { hash: anchor.transaction })
  if (result.status !== "SUCCESS") throw new Error(`the ledger does not have the anchor: it is ${result.status}`)
  const envelope = xdr.TransactionEnvelope.schema.decode(Buffer.from(result.envelopeXdr, "base64"))
  const transaction = transactionIn(envelope)
  const [hash, body] = [transaction && anchoredHash(transaction), anchor.checkpoint.split("\n\n")[0]]
  if (hash === undefined || !createHash("sha256").update(`${body}\n`).digest().equals(hash))
    throw new Error("the anchor's memo is not the hash of its checkpoint")
  if (sourceOf(transaction!) !== anchor.account) throw new Error(`the anchor is not of ${anchor.account}`)
  const check = `the ledger has the log of ${tree.size} in its transaction ${anchor.transaction}`
  if (now === undefined || now.tree.origin !== tree.origin) return [check]
  if (now.tree.size < tree.size) throw new Error(`the log went back, from the anchor's ${tree.size} leaves`)
  await checkConsistency(tree, now.tree, await now.tiles.consistency(tree.size))
  return [`${check}, which the log of ${now.tree.size} continues`]
}

/** When the last witness cosigned the proofs of a stored receipt; undefined unless all of them cosigned. */
const lastCosigned = async ({ outcomes }: Kept, witnesses: ReadonlyArray<string>): Promise<number | undefined> => {
  const notes = outcomes.flatMap(({ proof }: any) => (proof ? [proof.checkpoint] : []))
  const times = await Promise.all(notes.flatMap((note: string) => witnesses.map((key) => cosignedAt(note, key))))
  return times.length === 0 || times.includes(undefined) ? undefined : Math.max(...(times as Array<number>))
}

/** The stored receipt with its opened leaf. If the file has no proof, asks the facilitator for it. */
const withOutcomes = async (kept: Kept, log: string, transaction: string): Promise<Kept> => {
  if (kept.outcomes.some((one: any) => one.proof)) return kept
  const url = `${facilitatorAt(log)}/receipts/${transaction}?proof=1`
  const { outcomes } = await get(url).catch((error: Error) => {
    throw new Error(`the file has no proof, and ${error.message}; keep the answer of ${url} instead`)
  })
  if (!outcomes.some((one: any) => one.proof)) throw new Error("the log does not cover the payment yet; it does in 5 s")
  return { ...kept, outcomes }
}

/** Checks that the draft's attestation matches the receipt, and that a key of the facilitator signed it. */
const checkAttestation = async (
  attestation: KeptAttestation,
  claims: Claims,
  did: any,
  record: Claims
): Promise<string> => {
  const signer = attestationSigner(attestation)
  const { amount, asset, facilitator, network, observedAt, payee, payer, transaction } = attestation.payload
  if (String(facilitator).toLowerCase() !== signer)
    throw new Error(`${signer} signed the attestation of ${facilitator}`)
  const keys = did.verificationMethod.filter(({ id }: any) => id.startsWith(`${did.id}#attestation-`))
  if (!keys.some(({ publicKeyJwk }: any) => addressOfKey(publicKeyJwk) === signer))
    throw new Error(`${did.id} has no key of ${signer}, which signed the attestation`)
  const expected = { amount, asset, network, payTo: payee, payer, transaction }
  const differing = differingClaims(claims, expected)
  if (differing.length > 0 || Number(observedAt) !== claims["closedAt"])
    throw new Error(`the attestation is for another payment: ${[...differing, "observedAt"].join(", ")}`)
  if (![undefined, await attestationName(attestation)].includes(record["attestation"]))
    throw new Error("the log has another attestation of this payment")
  return `the attestation of ${signer} says the same`
}

/**
 * True if a claim has the expected value. The expected resource may also match by its hash, which replaces a long URL.
 */
const isAsExpected = async (claims: Claims, name: string, value: string): Promise<boolean> =>
  String(claims[name]) === value || (name === "resource" && claims["resourceHash"] === (await hashText(value)))

type DocumentAt = (place: string) => Promise<any>

const verifyText = async (text: string, options: VerifyOptions, documentAt: DocumentAt): Promise<VerifyReport> => {
  const { expected, ledger, log, maxAge, witnesses = [] } = options
  const read = readKept(text)
  const delivery =
    read.delivery === undefined || options.sellerDid === undefined
      ? undefined
      : await openDelivery(read.delivery, await documentAt(options.sellerDid))
  if (read.receipt === undefined && delivery === undefined) throw new Error("there is no receipt in the file")
  if (read.receipt === undefined)
    return {
      issuer: "",
      claims: {},
      checks: ["the seller signed its receipt"],
      outcome: await outcomeOf(undefined, delivery)
    }
  const receipt: string = read.receipt
  const issuer = issuerOf(receipt)
  const did = await documentAt(options.did ?? didUrl(issuer))
  if (did.id !== issuer) throw new Error(`the document is of ${did.id}, the receipt of ${issuer}`)
  // The request for a proof uses unverified members of the receipt; all of them are checked below.
  const named = JSON.parse(Buffer.from(receipt.split(".")[1] ?? "", "base64url").toString())
  if (!/^[0-9a-f]{64}$/.test(String(named.transaction))) throw new Error("the receipt contains no transaction")
  const kept = log === undefined ? read : await withOutcomes(read, log, named.transaction)
  // With the current log, all checkpoints are compared with it. Without it, the witnesses' lines prove when the
  // checkpoint existed.
  const cosigned = await lastCosigned(kept, witnesses)
  const { claims, key, proven } = await checkKept(kept, did, log === undefined ? cosigned : NaN)
  for (const [name, value] of Object.entries(expected))
    if (!(await isAsExpected(claims, name, value)))
      throw new Error(`not what was expected: ${name} is ${claims[name] ?? "not in it"}`)
  const checks = [`${key.id} signed it`]
  if (proven !== undefined) checks.push("its leaf is in the log of a signed checkpoint")
  if (proven?.place !== undefined)
    checks.push(`no other leaf is of this payment, by the map of the log of ${proven.proof.size}`)
  if (proven?.tree.time !== undefined) checks.push(`its checkpoint is of ${timeText(proven.tree.time)}`)
  const notes: Array<string> = proven === undefined ? [] : [proven.proof.checkpoint]
  const asked = log === undefined || proven === undefined ? undefined : await askLog(log, proven, did, maxAge)
  if (asked !== undefined) {
    checks.push(...asked.checks)
    notes.push(asked.note)
  } else if (maxAge !== undefined) await checkAge(proven?.tree ?? {}, maxAge)
  for (const key of witnesses) checks.push(await askWitness(key, notes))
  if (ledger !== undefined) checks.push(await askLedger(ledger, claims), ...(await askAnchor(ledger, did, asked)))
  if (kept.attestation)
    checks.push(await checkAttestation(kept.attestation, claims, did, JSON.parse(proven?.record ?? "{}")))
  if (delivery !== undefined) checks.push("the seller signed its receipt")
  else if (read.delivery !== undefined)
    checks.push("the seller's receipt was not checked: give its keys with --seller-did")
  return { issuer, claims, checks, outcome: await outcomeOf(claims, delivery) }
}

/** Checks a kept receipt; rejects with the first check that fails. */
export const verifyReceipt = async (options: VerifyOptions): Promise<VerifyReport> =>
  verifyText(await readFile(options.file, "utf8"), options, readDocument)

export interface StatementReport {
  readonly verified: number
  /** By the number of their line, from 1. */
  readonly refused: ReadonlyArray<{ readonly line: number; readonly why: string }>
  /** What moved, by network, asset and action (a deposit, a refund), in atomic units. */
  readonly totals: Readonly<Record<string, string>>
}

/** Checks a file with one kept receipt a line. Each document is read once; a payment counts once. */
export const verifyStatement = async (options: VerifyOptions): Promise<StatementReport> => {
  const documents = new Map<string, Promise<any>>()
  const documentAt: DocumentAt = (place) => {
    const document = documents.get(place) ?? readDocument(place)
    documents.set(place, document)
    return document
  }
  const lines = (await readFile(options.file, "utf8")).split("\n").map((text, at) => ({ text, line: at + 1 }))
  const [refused, totals]: [Array<StatementReport["refused"][number]>, Map<string, bigint>] = [[], new Map()]
  const lineOfPayment = new Map<string, number>()
  for (const { line, text } of lines.filter(({ text }) => text.trim() !== ""))
    try {
      const { claims, outcome } = await verifyText(text, options, documentAt)
      const { action, amount, asset, network, transaction } = claims
      if (amount === undefined || outcome === "MISMATCH") throw new Error(`payment and delivery: ${outcome}`)
      const first = lineOfPayment.get(`${network} ${transaction}`)
      if (first !== undefined) throw new Error(`line ${first} is of the same payment`)
      lineOfPayment.set(`${network} ${transaction}`, line)
      const total = [network, asset, action].filter((one) => one !== undefined).join(" ")
      totals.set(total, (totals.get(total) ?? 0n) + BigInt(amount))
    } catch (error) {
      refused.push({ line, why: error instanceof Error ? error.message : String(error) })
    }
  const summed = Object.fromEntries([...totals].map(([name, amount]) => [name, String(amount)]))
  return { verified: lineOfPayment.size, refused, totals: summed }
}
