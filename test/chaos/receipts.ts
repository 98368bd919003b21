// The receipts of a chaos run. A watcher reads the log's checkpoint at any replica all the time, as a witness does, and
// keeps the largest of each epoch; before a failover that loses commits the published log is downloaded. At the end
// every payment's receipt is verified offline, by the script of the examples and a DID document. Every outcome of the
// database has exactly one leaf. Every checkpoint that was seen is continued by the log of its epoch, or the next epoch
// contains a signed one that is as large.
import { Effect } from "effect"
import { mkdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { openTiles, readBytes, readNewest, tilePath } from "../../examples/receipts/tiles.mjs"
import { openCheckpoint, openReceipt, verify } from "../../examples/receipts/verify.mjs"
import { onServer } from "../support/failover.ts"

/** The part of a settle's answer that the checks use. */
export interface Answered {
  readonly transaction: string
  /** The answer's receipt; absent if a retry was answered with only the hash. */
  readonly receipt: string | undefined
  /** True if a failover may have lost the record of the answer. */
  readonly mayBeLost: boolean
}

export interface ReceiptsOptions {
  /** A replica's address; another one for each call. */
  readonly urlOf: () => string
  readonly authorization: string
  /** The current database. */
  readonly databaseUrl: string
  readonly count: (what: string) => void
}

const host = "pay.example"
export const receiptSettings = ["--set", `receipts.host=${host}`]

/** Number of clients of the log and of receipts, below a replica's answers per second. */
const readersMax = 4
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** Repeats while it rejects or finds nothing, as clients do. */
const again = async <A>(read: () => Promise<A | undefined>, what: string, tries = 60): Promise<A> => {
  for (let left = tries; left > 0; left--) {
    const found = await read().catch(() => undefined)
    if (found !== undefined) return found
    await pause(250)
  }
  throw new Error(`${what}: not within ${tries / 4} s`)
}

const json = async (url: string, headers: Record<string, string> = {}): Promise<any> => {
  const answer = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) })
  return answer.ok ? answer.json() : undefined
}

const placeOf = (url: string, origin: string) => `${url}/log/${origin === `${host}/log` ? 1 : origin.split("/")[2]}`

/** Downloads the published log of the current epoch; returns its folder. */
export const keepLog = async (url: string, folder: string): Promise<string> => {
  const { note } = await readNewest(`${url}/log`)
  const [origin = "", written] = note.split("\n")
  const size = Number(written)
  const put = async (path: string, bytes: string | Uint8Array) => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), bytes)
  }
  for (let level = 0; Math.floor(size / 256 ** level) > 0; level++) {
    const hashes = Math.floor(size / 256 ** level)
    for (let from = 0; from < hashes; from += 256) {
      const path = tilePath(level, from / 256, Math.min(256, hashes - from))
      await put(path, await readBytes(placeOf(url, origin), path))
    }
  }
  await put("checkpoint", note)
  return folder
}

/** Follows the log's checkpoints at any replica until it is stopped. */
export class LogWatcher {
  /** Roots, by origin and size. */
  readonly seen = new Map<string, Map<number, string>>()
  readonly faults: Array<string> = []
  reads = 0
  #did: unknown

  readonly follow = async (urlOf: () => string, isOver: () => boolean): Promise<void> => {
    while (!isOver()) {
      await this.#read(urlOf()).catch(() => undefined)
      await pause(200)
    }
  }

  async #read(url: string): Promise<void> {
    this.#did ??= await json(`${url}/.well-known/did.json`)
    const { note } = await readNewest(`${url}/log`)
    const tree = await openCheckpoint(note, this.#did).catch(() => undefined)
    if (tree === undefined) return void this.faults.push(`a checkpoint that no key of the log signed: ${note}`)
    const { origin, root, size } = tree
    this.reads += 1
    const roots = this.seen.get(origin) ?? new Map<number, string>()
    this.seen.set(origin, roots)
    if (roots.has(size) && roots.get(size) !== root) this.faults.push(`two roots of ${origin} at ${size} leaves`)
    roots.set(size, root)
  }

  /** Compares the seen checkpoints with the current log. */
  readonly compare = async ({ count, urlOf }: ReceiptsOptions): Promise<void> => {
    const { epochs } = await again(() => json(`${urlOf()}/log/epochs`), "the epochs of the log")
    for (const [origin, roots] of this.seen) {
      const at = epochs.findIndex((one: any) => one.origin === origin)
      const [last] = [...roots].sort(([a], [b]) => b - a)
      const kept: number = epochs[at]?.size ?? 0
      if (last![0] > kept) this.#compareLost(origin, last!, epochs[at + 1], count)
      const tiles = openTiles(placeOf(urlOf(), origin), kept)
      for (const [size, root] of roots) {
        if (size > kept) continue
        const now = await again(() => tiles.root(0, size), `the tiles of ${origin}`)
        if (now !== root) this.faults.push(`${origin} has another root at ${size} leaves than it published`)
      }
    }
  }

  #compareLost(origin: string, [size, root]: [number, string], next: any, count: ReceiptsOptions["count"]): void {
    const [, own, previous, named, namedRoot] = String(next?.statement).split("\n")
    if (own !== next?.origin || previous !== origin || Number(named) < size)
      return void this.faults.push(
        `${origin} published ${size} leaves; the epoch after it says ${named} of ${previous}`
      )
    if (Number(named) === size && Buffer.from(namedRoot!, "base64").toString("hex") !== root)
      return void this.faults.push(`the epoch after ${origin} names another root of ${size} leaves`)
    count("an epoch of the log that was lost in part, and said so")
  }
}

/** Outcomes of the database with the number of their leaves, except outcomes of an operator's correction. */
const readLeaves = (url: string) =>
  Effect.runPromise(
    onServer(
      url,
      (sql) => sql<{ outcomes: number; never: number; often: number }>`with logged as (
          select record::jsonb->>'settlement' as id, count(*)::int as leaves from receipts_leaves
          where record is not null and not record::jsonb ? 'by' group by 1),
        ended as (select id::text as id from kernel_settlements where state in ('settled', 'failed', 'expired'))
      select (select count(*)::int from ended) as outcomes,
        (select count(*)::int from ended where id not in (select id from logged)) as never,
        (select count(*)::int from logged where leaves > 1 or id not in (select id from ended)) as often`
    )
  ).then(([row]) => row!)

/** The error in one payment's receipt; undefined if it verifies. */
const faultOf = async (paid: Answered, did: any, options: ReceiptsOptions): Promise<string | undefined> => {
  const { authorization, count, urlOf } = options
  const { mayBeLost, receipt, transaction } = paid
  const answer = await again(async () => {
    const found = await json(`${urlOf()}/receipts/${transaction}?proof=1`, { authorization })
    return found?.outcomes.some((one: any) => one.proof) ? found : undefined
  }, `the proven receipt of ${transaction}`)
  const claims = await verify(answer, did)
  if (claims.transaction !== transaction) return `the receipt of ${transaction} is of ${claims.transaction}`
  if (receipt === undefined) return void count("receipts verified offline, read later")
  await openReceipt(receipt, did)
  if (receipt === answer.receipt) return void count("receipts verified offline, as they were answered")
  if (!mayBeLost) return `the receipt of ${transaction} is another one than was answered`
  return void count("receipts made once more, since a failover had lost the settlement")
}

/** All errors in the receipts and the log. */
export const checkReceipts = async (
  paidOnes: ReadonlyArray<Answered>,
  watcher: LogWatcher,
  options: ReceiptsOptions
): Promise<ReadonlyArray<string>> => {
  const faults: Array<string> = []
  const did = await again(() => json(`${options.urlOf()}/.well-known/did.json`), "the DID document")
  const rest = [...paidOnes]
  const reader = async () => {
    for (let paid = rest.shift(); paid !== undefined; paid = rest.shift()) {
      const fault = await faultOf(paid, did, options).catch((error: Error) => error.message)
      if (fault !== undefined) faults.push(fault)
    }
  }
  await Promise.all(Array.from({ length: readersMax }, reader))
  let leaves = await readLeaves(options.databaseUrl)
  for (let tries = 0; leaves.never > 0 && tries < 40; tries++) {
    await pause(250)
    leaves = await readLeaves(options.databaseUrl)
  }
  for (let n = 0; n < leaves.outcomes - leaves.never; n++) options.count("outcomes with exactly one leaf")
  if (leaves.never > 0) faults.push(`${leaves.never} outcomes are not in the log`)
  if (leaves.often > 0) faults.push(`${leaves.often} outcomes are in the log twice, or without a settlement`)
  await watcher.compare(options).catch((error: Error) => watcher.faults.push(error.message))
  return [...faults, ...watcher.faults]
}
