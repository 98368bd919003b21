// Reservations in one table, in the memory of a process or in a file that the processes of one machine share. The file
// is replaced as a whole before a step counts as done, so a reader always finds a complete table. Steps run one at a
// time. Ended reservations of past days are dropped by their age and also by their day, since this machine's clock may
// be wrong.
import { Clock, Effect, FileSystem, Path, type Scope, Semaphore } from "effect"
import { max as larger } from "effect/BigInt"
import { FolderLock } from "../../../kernel/platform/Host.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { replaceFile } from "../replaceFile.ts"
import { turnsIn } from "./turnsIn.ts"
import {
  BudgetStore,
  BudgetUnavailable,
  contentLengthsMax,
  receiptsMax,
  type SignedTotals,
  type StoredChannel
} from "./BudgetStore.ts"
import { channelsCodec, type Records, recordsInFile, recordsInMemory, totalsCodec } from "./channelRecords.ts"
import { type KeptPayments, keptInFiles, keptInMemory } from "./keptPayments.ts"
import { isOpen, mayTransition, releasedSince, remaining, type Reservation, undelivered } from "./Reservation.ts"
import { decodeTable, encodeTable } from "./ReservationWire.ts"

const keptMillis = 3 * 86_400_000
/** How long a call waits for another process's call on its channel. */
const channelMillis = 30_000

/** True if no ceiling counts this ended reservation any more, compared with the one being written. */
const isPast = (one: Reservation, written: Reservation, now: number): boolean =>
  now - one.createdAtMillis >= keptMillis && Date.parse(written.day) - Date.parse(one.day) >= keptMillis

const isUndelivered = ({ state }: Reservation): boolean => undelivered.includes(state)

const withReceipts = (all: ReadonlyArray<Reservation>, agent: string) =>
  all
    .filter((one) => one.agent === agent && one.receipt !== undefined)
    .sort((a, b) => b.createdAtMillis - a.createdAtMillis)
    .slice(0, receiptsMax)

/** Storage of a table: its rows, the data stored separately, and a lock that serializes the steps of all processes. */
interface TableStorage {
  readonly load: Effect.Effect<ReadonlyArray<Reservation>, BudgetUnavailable>
  readonly save: (table: ReadonlyArray<Reservation>) => Effect.Effect<void, BudgetUnavailable>
  readonly inTurn: <A>(step: Effect.Effect<A, BudgetUnavailable>) => Effect.Effect<A, BudgetUnavailable>
  readonly payments: KeptPayments
  readonly totals: Records<SignedTotals>
  readonly channels: Records<Omit<StoredChannel, "channelId">>
  readonly holdChannel: BudgetStore["Service"]["holdChannel"]
  readonly isShared: boolean
}

type Step = <A>(effect: Effect.Effect<A, BudgetUnavailable>) => Effect.Effect<A, BudgetUnavailable>

const makeKeep = ({ load, payments }: TableStorage, step: Step): BudgetStore["Service"]["keep"] => {
  /**
   * Makes room for content by dropping the contents of acknowledged payments, and then the oldest contents of agents
   * that have more than this one will have.
   */
  const makeRoom = Effect.fnUntraced(function* (
    table: ReadonlyArray<Reservation>,
    agent: string,
    length: number,
    lengthsMax: number
  ) {
    const contents = new Map(yield* payments.contents)
    const sumOf = (ids: Iterable<string>) => [...ids].reduce((sum, id) => sum + (contents.get(id) ?? 0), 0)
    const heldBy = (one: string) => sumOf(table.flatMap((row) => (row.agent === one ? [row.id] : [])))
    const isOver = () => sumOf(contents.keys()) + length > lengthsMax
    const drop = Effect.fnUntraced(function* ({ id }: Reservation) {
      if (!contents.delete(id)) return
      // The payment stays, so that its seller can be asked again.
      const { payment } = yield* payments.get(id)
      yield* payments.drop(id)
      if (payment !== undefined) yield* payments.put(id, { payment })
    })
    for (const one of table) if (isOver() && one.state === "acknowledged") yield* drop(one)
    while (isOver()) {
      const held = table.filter(({ id }) => contents.has(id))
      const oldest = held.toSorted((a, b) => heldBy(b.agent) - heldBy(a.agent))[0]
      if (oldest === undefined || heldBy(oldest.agent) <= heldBy(agent) + length) return false
      yield* drop(oldest)
    }
    return true
  })

  return (id, kept, lengthsMax = contentLengthsMax) =>
    step(
      Effect.gen(function* () {
        const table = yield* load
        const one = table.find((known) => known.id === id)
        if (one === undefined || !isUndelivered(one)) return false
        if (kept.content !== undefined && !(yield* makeRoom(table, one.agent, kept.content.length, lengthsMax)))
          return false
        yield* payments.put(id, kept)
        return true
      })
    )
}

interface SeenAnswer {
  /** Milliseconds since its acknowledgement when it was seen first, by the machine's clock. */
  readonly age: number
  /** The monotonic time then. */
  readonly at: number
}

/**
 * The time since an acknowledgement. From its first sight on it is counted by the monotonic clock, because setting the
 * machine's clock forward would end the replay window, and the call would be paid again.
 */
const makeAges = () => {
  const seen = new Map<string, SeenAnswer>()
  const note = (id: string, age: number) =>
    Effect.map(monotonicMillis, (at): SeenAnswer => {
      const known = seen.get(id) ?? { age, at }
      seen.set(id, known)
      return known
    })
  /** The acknowledged payments of a table that are at least this old. */
  const olderThan = Effect.fnUntraced(function* (table: ReadonlyArray<Reservation>, ageMillis: number) {
    const [now, elapsed] = [yield* Clock.currentTimeMillis, yield* monotonicMillis]
    const waiting = table.filter(({ state }) => state === "acknowledged")
    const ids = new Set(waiting.map(({ id }) => id))
    for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id)
    const old = new Set<string>()
    for (const { acknowledgedAtMillis = 0, id } of waiting) {
      const { age, at } = yield* note(id, Math.max(0, now - acknowledgedAtMillis))
      if (age + elapsed - at >= ageMillis) old.add(id)
    }
    return old
  })
  return { begin: (id: string) => note(id, 0), olderThan }
}

const makeSteps = (storage: TableStorage) => {
  const { inTurn, load, payments, save } = storage
  const ages = makeAges()
  const step: Step = (effect) => Effect.uninterruptible(inTurn(effect))

  /** A change counts once it is saved. */
  const put = Effect.fnUntraced(function* (table: ReadonlyArray<Reservation>, reservation: Reservation) {
    const now = yield* Clock.currentTimeMillis
    const { id, state } = reservation
    const others = table.filter((one) => one.id !== id)
    const staying = others.filter((one) => isUndelivered(one) || !isPast(one, reservation, now))
    yield* save([...staying, reservation])
    const gone = others.filter((one) => !staying.includes(one))
    yield* Effect.forEach(gone, (one) => payments.drop(one.id), { discard: true })
    if (state === "settled" || (state === "released" && (yield* payments.get(id)).content === undefined))
      yield* payments.drop(id)
  })

  const reserve: BudgetStore["Service"]["reserve"] = (reservation, ceilings, made) =>
    step(
      Effect.gen(function* () {
        const table = yield* load
        const { invocation } = reservation
        if (table.some(({ id }) => id === reservation.id)) return "changed"
        if (table.filter((one) => one.invocation === invocation).length !== made) return "changed"
        if (reservation.amount > remaining(table, reservation, ceilings)) return "over"
        yield* put(table, reservation)
        return "kept"
      })
    )

  const move: BudgetStore["Service"]["move"] = (id, { authorization, from, receipt, state, transaction }) =>
    step(
      Effect.gen(function* () {
        const table = yield* load
        const one = table.find((known) => known.id === id)
        if (one === undefined || !mayTransition(one.state, state)) return false
        if (from !== undefined && one.state !== from) return false
        yield* put(table, {
          ...one,
          state,
          authorization: authorization ?? one.authorization,
          transaction: transaction ?? one.transaction,
          ...(receipt === undefined ? {} : { receipt }),
          ...(state === "acknowledged" ? { acknowledgedAtMillis: yield* Clock.currentTimeMillis } : {})
        })
        if (state === "acknowledged") yield* ages.begin(id)
        return true
      })
    )

  const settleAcknowledged: BudgetStore["Service"]["settleAcknowledged"] = Effect.fnUntraced(function* (ageMillis) {
    if ((yield* ages.olderThan(yield* load, ageMillis)).size === 0) return
    yield* step(
      Effect.gen(function* () {
        const table = yield* load
        const old = yield* ages.olderThan(table, ageMillis)
        yield* save(table.map((one) => (old.has(one.id) ? { ...one, state: "settled" as const } : one)))
        yield* Effect.forEach(old, (id) => payments.drop(id), { discard: true })
      })
    )
  })

  return { keep: makeKeep(storage, step), move, reserve, settleAcknowledged, step }
}

const noTotals: SignedTotals = { counted: 0n, sent: 0n }

const makeTable = (storage: TableStorage) => {
  const { channels, holdChannel, isShared, load, payments, totals } = storage
  const { keep, move, reserve, settleAcknowledged, step } = makeSteps(storage)
  const whichOf = (invocation: string) =>
    Effect.map(load, (table) => table.filter((one) => one.invocation === invocation))

  return BudgetStore.of({
    reserve,
    move,
    open: Effect.map(load, (table) => table.filter(isOpen)),
    settleAcknowledged,
    ofInvocation: Effect.fnUntraced(function* (invocation) {
      const all = yield* whichOf(invocation)
      const waiting: Array<Reservation> = []
      for (const one of all.toReversed())
        if (isUndelivered(one)) waiting.push(one)
        else if (one.state === "released" && (yield* payments.get(one.id)).content !== undefined) waiting.push(one)
      return { made: all.length, undelivered: waiting, released: releasedSince(all) }
    }),
    keep,
    kept: payments.get,
    receipts: (agent) => Effect.map(load, (table) => withReceipts(table, agent)),
    forget: (id) =>
      step(
        Effect.flatMap(load, (table) =>
          table.some((one) => one.id === id && one.state === "released") ? payments.drop(id) : Effect.void
        )
      ),
    totals: (channelId) => Effect.map(totals.all, (all) => all.get(channelId) ?? noTotals),
    keepTotals: (channelId, { counted, sent }) =>
      step(
        Effect.flatMap(totals.all, (all) => {
          const known = all.get(channelId) ?? noTotals
          return totals.put(channelId, { counted: larger(known.counted, counted), sent: larger(known.sent, sent) })
        })
      ),
    channels: Effect.map(channels.all, (all) => [...all].map(([channelId, one]) => ({ ...one, channelId }))),
    keepChannel: ({ channelId, ...one }) => step(channels.put(channelId, one)),
    forgetChannel: (channelId) => step(channels.put(channelId, undefined)),
    holdChannel,
    isShared
  })
}

export const memoryStore: Effect.Effect<BudgetStore["Service"]> = Effect.sync(() => {
  const lock = Semaphore.makeUnsafe(1)
  let table: ReadonlyArray<Reservation> = []
  return makeTable({
    load: Effect.sync(() => table),
    save: (next) => Effect.sync(() => void (table = next)),
    inTurn: Semaphore.withPermit(lock),
    payments: keptInMemory(),
    totals: recordsInMemory(),
    channels: recordsInMemory(),
    holdChannel: () => Effect.void,
    isShared: false
  })
})

const unavailable = (cause: unknown) => new BudgetUnavailable({ cause })

const fileIn = (path: Path.Path, folder: string): string => path.join(folder, "reservations.json")

/** Reads the table in `folder` without a lock; the file is always complete. */
export const readTable = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const file = fileIn(yield* Path.Path, folder)
  return (yield* files.exists(file)) ? yield* decodeTable(yield* files.readFileString(file)) : []
}, Effect.mapError(unavailable))

/** The file's table, decoded again only after another process has written it. */
const loaded = (files: FileSystem.FileSystem, file: string) => {
  let cached: { readonly text: string; readonly table: ReadonlyArray<Reservation> } | undefined
  return Effect.gen(function* () {
    if (!(yield* files.exists(file))) return []
    const text = yield* files.readFileString(file)
    if (cached?.text !== text) cached = { text, table: yield* decodeTable(text) }
    return cached.table
  }).pipe(Effect.mapError(unavailable))
}

/**
 * A store in `folder` for the processes of one machine. Each step runs under a lock and reads the changes of the other
 * processes, so that they spend one budget.
 */
export const fileStore = (
  folder: string
): Effect.Effect<
  BudgetStore["Service"],
  BudgetUnavailable,
  FileSystem.FileSystem | Path.Path | FolderLock | Scope.Scope
> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
    const file = fileIn(path, folder)
    const load = loaded(files, file)
    const save = (table: ReadonlyArray<Reservation>) =>
      Effect.mapError(replaceFile(files, file, encodeTable(table)), unavailable)
    const inTurn = yield* turnsIn(path.join(folder, "step"))
    const payments = yield* keptInFiles(path.join(folder, "payments"))
    // A reservation that its process had not signed when it ended is never signed. The first process releases all of
    // them; later ones leave them to `reconcileHolds`. A live process whose reservation is released here does not sign
    // it.
    const { hold, holdSoon } = yield* FolderLock
    const isFirst = yield* Effect.option(hold(folder))
    if (isFirst._tag === "Some")
      yield* inTurn(
        Effect.gen(function* () {
          const table = yield* load
          const known = new Set(table.filter(({ state }) => state !== "settled").map(({ id }) => id))
          yield* payments.retain(known)
          if (!table.some(({ state }) => state === "reserved")) return
          yield* save(table.map((one) => (one.state === "reserved" ? { ...one, state: "released" as const } : one)))
        })
      )
    const totals = yield* recordsInFile(folder, "channels.json", totalsCodec)
    const channels = yield* recordsInFile(folder, "channel-terms.json", channelsCodec)
    const holdChannel = (channelId: string) =>
      Effect.mapError(holdSoon(path.join(folder, `channel-${channelId}`), channelMillis), unavailable)
    return makeTable({ load, save, inTurn, payments, totals, channels, holdChannel, isShared: true })
  }).pipe(Effect.mapError((error) => (error instanceof BudgetUnavailable ? error : unavailable(error))))
