// Reservations in a table of this process, in memory alone or with a file behind it. The file is written whole beside
// the old one and put in its place before a step counts as done, so it always holds one whole table. One process has
// the folder. Ended reservations of days gone by are dropped: by their age and by the days that are counted, since this
// machine's clock may be wrong.
import { Clock, Effect, FileSystem, Path, type Scope, Semaphore } from "effect"
import { FolderLock } from "../../../kernel/platform/FolderLock.ts"
import { replaceFile } from "../replaceFile.ts"
import { BudgetStore, BudgetUnavailable, contentsMax, receiptsMax } from "./BudgetStore.ts"
import { type ChannelTotals, totalsInFile, totalsInMemory } from "./channelTotals.ts"
import { type KeptPayments, keptInFiles, keptInMemory } from "./keptPayments.ts"
import { isOpen, mayTransition, releasedSince, remaining, type Reservation, undelivered } from "./Reservation.ts"
import { decodeTable, encodeTable } from "./ReservationWire.ts"

const keptMillis = 3 * 86_400_000

/** Whether an ended reservation counts for nothing any more, as of one that is written now. */
const isPast = (one: Reservation, written: Reservation, now: number): boolean =>
  now - one.createdAtMillis >= keptMillis && Date.parse(written.day) - Date.parse(one.day) >= keptMillis

const isUndelivered = ({ state }: Reservation): boolean => undelivered.includes(state)

const withReceipts = (all: ReadonlyArray<Reservation>, agent: string) =>
  all
    .filter((one) => one.agent === agent && one.receipt !== undefined)
    .sort((a, b) => b.createdAtMillis - a.createdAtMillis)
    .slice(0, receiptsMax)

const makeTable = (
  initial: ReadonlyArray<Reservation>,
  save: (table: ReadonlyArray<Reservation>) => Effect.Effect<void, BudgetUnavailable>,
  payments: KeptPayments,
  totals: ChannelTotals
) => {
  const lock = Semaphore.makeUnsafe(1)
  let table = new Map(initial.map((reservation) => [reservation.id, reservation]))

  /** A change counts when it is saved. */
  const put = Effect.fnUntraced(function* (reservation: Reservation) {
    const now = yield* Clock.currentTimeMillis
    const next = new Map([...table].filter(([, one]) => isUndelivered(one) || !isPast(one, reservation, now)))
    next.set(reservation.id, reservation)
    yield* save([...next.values()])
    const gone = [...table.keys()].filter((id) => !next.has(id))
    table = next
    yield* Effect.forEach(gone, payments.drop, { discard: true })
    const { id, state } = reservation
    if (state === "settled" || (state === "released" && !payments.hasContent(id))) yield* payments.drop(id)
  })

  const ofInvocation = (invocation: string) => [...table.values()].filter((one) => one.invocation === invocation)

  return BudgetStore.of({
    reserve: (reservation, ceilings, made) =>
      Effect.gen(function* () {
        if (table.has(reservation.id) || ofInvocation(reservation.invocation).length !== made) return "changed"
        if (reservation.amount > remaining(table.values(), reservation, ceilings)) return "over"
        yield* put(reservation)
        return "kept"
      }).pipe(Semaphore.withPermit(lock), Effect.uninterruptible),
    move: (id, { authorization, receipt, state, transaction }) =>
      Effect.gen(function* () {
        const one = table.get(id)
        if (one === undefined || !mayTransition(one.state, state)) return false
        yield* put({
          ...one,
          state,
          authorization: authorization ?? one.authorization,
          transaction: transaction ?? one.transaction,
          ...(receipt === undefined ? {} : { receipt })
        })
        return true
      }).pipe(Semaphore.withPermit(lock), Effect.uninterruptible),
    open: Effect.sync(() => [...table.values()].filter(isOpen)),
    ofInvocation: (invocation) =>
      Effect.sync(() => {
        const all = ofInvocation(invocation)
        const waiting = all.filter((one) => isUndelivered(one) || payments.hasContent(one.id))
        return { made: all.length, undelivered: waiting.reverse(), released: releasedSince(all) }
      }),
    keep: (id, kept) =>
      Effect.gen(function* () {
        const one = table.get(id)
        if (one === undefined || !isUndelivered(one)) return false
        if (kept.content !== undefined && payments.contents() >= contentsMax) return false
        yield* payments.put(id, kept)
        return true
      }).pipe(Semaphore.withPermit(lock), Effect.uninterruptible),
    kept: payments.get,
    receipts: (agent) => Effect.sync(() => withReceipts([...table.values()], agent)),
    forget: payments.drop,
    totals: (channelId) => Effect.sync(() => totals.get(channelId) ?? { counted: 0n, sent: 0n }),
    keepTotals: (channelId, signed) =>
      totals.put(channelId, signed).pipe(Semaphore.withPermit(lock), Effect.uninterruptible),
    isShared: false
  })
}

export const memoryStore: Effect.Effect<BudgetStore["Service"]> = Effect.sync(() =>
  makeTable([], () => Effect.void, keptInMemory(), totalsInMemory())
)

const unavailable = (cause: unknown) => new BudgetUnavailable({ cause })

const fileIn = (path: Path.Path, folder: string): string => path.join(folder, "reservations.json")

/** The table in `folder` as it is, for a reader beside the process that has it: the file always holds a whole one. */
export const readTable = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const file = fileIn(yield* Path.Path, folder)
  return (yield* files.exists(file)) ? yield* decodeTable(yield* files.readFileString(file)) : []
}, Effect.mapError(unavailable))

/** A store in `folder`, which this process has alone until the Scope closes. */
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
    yield* (yield* FolderLock).hold(folder)
    const file = fileIn(path, folder)
    const found = (yield* files.exists(file)) ? yield* decodeTable(yield* files.readFileString(file)) : []
    // This process alone has the folder: what an earlier one had reserved and not signed, it never signs.
    const initial = found.map((one) => (one.state === "reserved" ? { ...one, state: "released" as const } : one))
    const payments = yield* keptInFiles(
      path.join(folder, "payments"),
      new Set(initial.filter((one) => one.state !== "settled").map(({ id }) => id))
    )
    const save = (table: ReadonlyArray<Reservation>) =>
      Effect.mapError(replaceFile(files, file, encodeTable(table)), unavailable)
    return makeTable(initial, save, payments, yield* totalsInFile(folder))
  }).pipe(Effect.mapError((error) => (error instanceof BudgetUnavailable ? error : unavailable(error))))
