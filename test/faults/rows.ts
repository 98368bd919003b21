// The faults of a place, each with readiness, the answer to a caller, and the remedy. If `caller` is undefined,
// payments settle during the fault.
import { Effect } from "effect"
import { closeSync, openSync, readdirSync, rmSync, statfsSync, statSync, writeSync } from "node:fs"
import { join } from "node:path"
import { onServer } from "../support/failover.ts"
import type { ProxiedCall } from "../support/rig/rpcProxy.ts"
import { longSeconds, type Place } from "./Place.ts"

export interface Fault {
  readonly name: string
  readonly place: "embedded" | "disk" | "postgres"
  /** Breaks the place; resolves with its mend. */
  readonly breaks: (place: Place) => Promise<() => Promise<void>>
  /** In the JSON of readiness during the fault, with its HTTP status first; `{"http":0}` without an answer. */
  readonly health: RegExp
  /** In the JSON of a settle's answer during the fault. */
  readonly caller: RegExp | undefined
  readonly heals: string
  /** How long the payment during the fault is valid. */
  readonly paymentSeconds?: number
  /** The ledger starts again, without the earlier balances. */
  readonly isNewLedger?: boolean
}

const ready = /"http":200/
const unready = /"http":503/
const skew = /this machine's clock and the ledger's differ/
const busy = /"status":503.*"success":false/

const lying = (place: Place, count: number, lie: (call: ProxiedCall) => Promise<boolean>) => {
  const liars = place.endpoints.slice(0, count)
  for (const endpoint of liars) endpoint.lie = lie
  return async () => {
    for (const endpoint of liars) endpoint.lie = undefined
  }
}

/** Changes the result of some methods. */
const changing =
  (change: (method: string, result: any) => unknown) =>
  async (call: ProxiedCall): Promise<boolean> => {
    const { status, text } = await call.passOn()
    const { result, ...answer } = JSON.parse(text)
    const changed = result === undefined ? undefined : change(call.method, result)
    if (changed === undefined) return false
    call.answer(status, JSON.stringify({ ...answer, result: changed }))
    return true
  }

const notFound = (result: any) => ({
  status: "NOT_FOUND",
  latestLedger: result.latestLedger,
  oldestLedger: result.oldestLedger
})

/** Submissions are swallowed, and every hash is answered with the same earlier success. */
const forgedSuccess = async (place: Place) => {
  const payment = await place.pay()
  let success: any
  const watch = lying(
    place,
    1,
    changing((method, result) => {
      if (method === "getTransaction" && result.status === "SUCCESS") success = result
      return undefined
    })
  )
  await place.bring(payment)
  await watch()
  return lying(place, 1, async (call) => {
    if (call.method === "sendTransaction") {
      call.answer(
        200,
        JSON.stringify({
          jsonrpc: "2.0",
          id: call.id,
          result: { status: "PENDING", hash: "0".repeat(64), latestLedger: 1 }
        })
      )
      return true
    }
    return changing((method) => (method === "getTransaction" ? success : undefined))(call)
  })
}

/** The close times of both endpoints differ from this machine's clock. */
const skewed = (place: Place, seconds: () => number) =>
  lying(
    place,
    2,
    changing((method, result) =>
      method === "getLatestLedger" && result.closeTime !== undefined
        ? { ...result, closeTime: String(Number(result.closeTime) + Math.round(seconds())) }
        : undefined
    )
  )

const slewed = async (place: Place) => {
  const since = performance.now()
  return skewed(place, () => ((performance.now() - since) / 1_000) * 2)
}

/** As many endpoints hide every transaction. */
const hidden = (endpoints: 1 | 2) => async (place: Place) =>
  lying(
    place,
    endpoints,
    changing((method, result) => (method === "getTransaction" ? notFound(result) : undefined))
  )

/** The first answer of each kind, permanently. */
const frozen = async (place: Place) => {
  const first = new Map<string, unknown>()
  return lying(
    place,
    1,
    changing((method, result) => {
      if (method !== "getLatestLedger" && method !== "getLedgerEntries") return undefined
      if (!first.has(method)) first.set(method, result)
      return first.get(method)
    })
  )
}

const marginBytes = 1_000_000_000

/** The reserve is below the free space by a gigabyte, and a file takes two. */
const fullDisk = async (place: Place) => {
  const file = join(place.folder, "full")
  const opened = openSync(file, "wx")
  const chunk = Buffer.alloc(8_000_000, 1)
  for (let written = 0; written < 2 * marginBytes; written += chunk.length) writeSync(opened, chunk)
  closeSync(opened)
  return async () => rmSync(file, { force: true })
}

export const diskReserveMb = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder)
  return Math.floor((bavail * bsize - marginBytes) / 1_000_000)
}

/** The process dies, and the last half page of its newest log segment was not written. */
const tornWrite = async (place: Place) => {
  await place.replica.crash()
  const stopped = place.replica.stop()
  await stopped
  const folder = join(place.state, "database", "pg_wal")
  const newest = readdirSync(folder)
    .filter((name) => /^[0-9A-F]{24}$/.test(name))
    .toSorted()
    .at(-1)!
  const { size } = statSync(join(folder, newest))
  const opened = openSync(join(folder, newest), "r+")
  writeSync(opened, Buffer.alloc(4_096), 0, 4_096, size - 4_096)
  closeSync(opened)
  return async () => {
    place.replica.start()
    await place.replica.ready()
  }
}

const readOnly = async (place: Place) => {
  const set = (value: string) =>
    Effect.runPromise(
      onServer(place.postgres!.url, (sql) =>
        Effect.andThen(
          sql.unsafe(`alter system set default_transaction_read_only = ${value}`).unprepared,
          sql`select pg_reload_conf()`
        )
      )
    )
  await set("on")
  // The setting holds for new transactions, but the statement that resets it needs to write.
  return async () => {
    await set("off")
  }
}

/** A standby takes over behind the same address. */
const promoted = async (place: Place) => {
  const standby = await place.standby()
  place.relay!.cut()
  await Effect.runPromise(standby.promote)
  return async () => place.relay!.connectTo(Number(new URL(standby.server.url).port))
}

export const faults: ReadonlyArray<Fault> = [
  {
    name: "disk full",
    place: "disk",
    breaks: fullDisk,
    health: /the disk is full: [0-9]+ MB free/,
    caller: /"status":503.*disk is full/,
    heals: "space on the disk"
  },
  {
    name: "torn write of the embedded database, after a kill",
    place: "embedded",
    breaks: tornWrite,
    health: /"http":0/,
    caller: /fetch failed|ECONNREFUSED/,
    heals: "a start, which recovers"
  },
  {
    name: "clock stepped: half an hour slow",
    place: "embedded",
    breaks: async (place) => skewed(place, () => 1_800),
    health: skew,
    caller: undefined,
    heals: "nothing needed: times come from the ledger"
  },
  {
    name: "clock stepped: an hour fast",
    place: "embedded",
    breaks: async (place) => skewed(place, () => -3_600),
    health: skew,
    caller: undefined,
    heals: "nothing needed: times come from the ledger"
  },
  {
    name: "clock slewed: two seconds each second",
    place: "embedded",
    breaks: slewed,
    health: skew,
    caller: undefined,
    heals: "nothing needed: times come from the ledger"
  },
  {
    name: "one endpoint forges SUCCESS and swallows the send",
    place: "embedded",
    breaks: forgedSuccess,
    health: ready,
    caller: /settlement_pending/,
    heals: "the endpoint's mend: the forged success was never believed"
  },
  {
    name: "one endpoint hides every transaction",
    place: "embedded",
    breaks: hidden(1),
    health: ready,
    caller: undefined,
    heals: "the other endpoint's evidence"
  },
  {
    name: "one endpoint answers an old snapshot",
    place: "embedded",
    breaks: frozen,
    health: ready,
    caller: undefined,
    heals: "the endpoint with the newest ledger"
  },
  {
    name: "both endpoints answer NOT_FOUND to every hash",
    place: "embedded",
    breaks: hidden(2),
    health: ready,
    caller: undefined,
    heals: "the pages of ledgers, where the hash is found"
  },
  {
    name: "no endpoint answers",
    place: "embedded",
    breaks: async (place) =>
      lying(place, 2, async (call) => {
        call.cut()
        return true
      }),
    health: /the ledger does not advance/,
    paymentSeconds: longSeconds,
    caller: busy,
    heals: "an endpoint that answers"
  },
  {
    name: "PostgreSQL silent",
    place: "postgres",
    breaks: async ({ postgres }) => {
      postgres!.freeze!()
      return async () => postgres!.thaw!()
    },
    health: unready,
    caller: busy,
    heals: "the server's answer, with the same process"
  },
  {
    name: "PostgreSQL stopped",
    place: "postgres",
    breaks: ({ postgres }) => postgres!.pause!(),
    health: unready,
    caller: busy,
    heals: "the server's start, with the same process"
  },
  {
    name: "PostgreSQL read-only",
    place: "postgres",
    breaks: readOnly,
    health: /the database is read-only/,
    caller: busy,
    heals: "the first write that succeeds"
  },
  {
    name: "PostgreSQL promoted",
    place: "postgres",
    breaks: promoted,
    health: unready,
    caller: busy,
    heals: "the address, which leads to the new primary"
  },
  // The last fault of its place, because it deletes the ledger's history.
  {
    name: "the test network is reset",
    place: "embedded",
    breaks: async (place) => {
      await place.newLedger()
      return async () => {}
    },
    health: ready,
    caller: undefined,
    heals: "new accounts from the friendbot, made by the facilitator",
    isNewLedger: true
  }
]
