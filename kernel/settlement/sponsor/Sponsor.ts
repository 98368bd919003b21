// Watches whether settlements can be recorded and paid for: whether the database accepts writes, the balances of
// sponsor and channels, the maximum cost of open settlements, the channels, and the inclusion fee. In the normal state
// a check is free and runs no statement. During a problem the state is read again, a few times a second at most, so
// that it recovers with the next request. Otherwise a payment could hold a channel for its authorization's life, only
// to find that the sponsor is empty.
import { Context, Duration, Effect, Layer, Option, Schedule, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"
import { Limits } from "../../config/Limits.ts"
import { Network } from "../../config/Network.ts"
import { WriteProbe } from "../../health/WriteProbe.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import type { LedgerAccount } from "../../stellar/LedgerEntry.ts"
import { Signer } from "../../signer/Signer.ts"
import { leasableChannels } from "../channels/ChannelStore.ts"
import { fundingProblem, isOpening, sponsorProblem, type SponsorStatus } from "./sponsorProblem.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** Maximum accounts of one RPC call. */
const accountsMax = 200
/** Minimum interval of reads of open costs and channels in the normal state; accounts are read less often. */
const readMillis = 1_000
const accountsMillis = 5_000
/** Interval between two readings while something is missing and a payment asks. */
const againMillis = 100
/** How long a request waits for a reading that may change its answer. */
const patience = Duration.millis(500)
/** A first start completes within seconds; only a problem that lasts longer causes a warning. */
const warnAfterMillis = 10_000
/** For this long after its start, a process lets payments wait for channels that it is opening. */
const openingMillis = 20_000
const openingPolls = Schedule.spaced("200 millis")
/** How long the start waits for a first reading, to report whether payments are paid for. */
const startWait = Duration.seconds(2)
/** Longest time between two readings without a new ledger, a problem or a payment. */
const every = Duration.seconds(5)
const everyUnattended = Duration.seconds(30)

/** One reading of everything, and when it was made. */
interface SponsorReading {
  readonly status: SponsorStatus
  readonly readAt: number
  readonly accountsAt: number
  readonly accounts: ReadonlyMap<string, LedgerAccount>
}

/** Reads the open costs and the channels; also the accounts if they are not given. */
const makeReader = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const network = yield* Network
  const rpc = yield* LedgerRpc
  const signer = yield* Signer

  const readAccounts = Effect.fnUntraced(function* (addresses: ReadonlyArray<string>) {
    const byAddress = new Map<string, LedgerAccount>()
    for (let at = 0; at < addresses.length; at += accountsMax) {
      const { accounts } = yield* rpc.accounts(addresses.slice(at, at + accountsMax))
      for (const [address, account] of accounts) byAddress.set(address, account)
    }
    return byAddress
  })

  return Effect.fnUntraced(function* (previous: SponsorReading | undefined) {
    const [stored] = yield* sql<{
      owed: bigint
      age: number | null
      open: number
      addresses: ReadonlyArray<string>
    }>`select
      (select count(*)::int from kernel_settlements where state in ('prepared', 'submitted')) as open,
      coalesce(sum(budget_stroops), 0)::int8 as owed,
      extract(epoch from clock_timestamp() - min(recorded_at))::float8 as age,
      array(select address from kernel_channels where ${leasableChannels(sql, network.id, signer)}) as addresses
      from kernel_settlements where network = ${network.id} and sponsor = ${signer.sponsor}
        and state in ('prepared', 'submitted')`
    const { addresses, age, open, owed } = stored!
    // A new channel has not been read yet.
    const isKnown = previous !== undefined && addresses.every((address) => previous.accounts.has(address))
    const accounts = isKnown ? previous.accounts : yield* readAccounts([signer.sponsor, ...addresses])
    const sponsor = accounts.get(signer.sponsor)
    const usable = addresses.flatMap((address) => accounts.get(address) ?? [])
    const readAt = yield* monotonicMillis
    const status: SponsorStatus = {
      account: sponsor,
      owedStroops: owed,
      channelsReady: addresses.length,
      channelsUsable: usable.length,
      channelStroopsLeast: usable
        .map(({ balanceStroops }) => balanceStroops)
        .reduce<bigint | undefined>((least, one) => (least === undefined || one < least ? one : least), undefined),
      open,
      oldestOpenSeconds: age ?? undefined
    }
    return { status, readAt, accountsAt: isKnown ? previous.accountsAt : readAt, accounts } satisfies SponsorReading
  })
})

/** The last reading, and the time of the next one. */
const makeReadings = Effect.gen(function* () {
  const read = yield* makeReader
  const one = yield* Semaphore.make(1)
  let reading: SponsorReading | undefined

  /** Reads the open costs if they are old, and the accounts if those are. */
  const refresh = one.withPermits(1)(
    Effect.gen(function* () {
      const now = yield* monotonicMillis
      if (reading !== undefined && now - reading.readAt < readMillis) return
      const areOld = reading === undefined || now - reading.accountsAt >= accountsMillis
      reading = yield* read(areOld ? undefined : reading)
    })
  )

  /** Reads everything again: it keeps nothing from before the call, and spaces the readings. */
  const readAgain = Effect.gen(function* () {
    const requestedAt = yield* monotonicMillis
    yield* one.withPermits(1)(
      Effect.gen(function* () {
        const accountsAt = reading?.accountsAt ?? -Infinity
        if (accountsAt > requestedAt) return
        yield* Effect.sleep(Math.max(0, accountsAt + againMillis - (yield* monotonicMillis)))
        reading = yield* read(undefined)
      })
    )
  })

  return {
    refresh,
    readAgain,
    status: () => reading?.status,
    doubt: () => {
      if (reading !== undefined) reading = { ...reading, readAt: -Infinity, accountsAt: -Infinity }
    }
  }
})

interface Note {
  readonly problem: string | undefined
  readonly since: number
  isSaid: boolean
  /**
   * A warning was logged since settlements could last be paid for, about this problem or an earlier one that led to it.
   */
  hasBegun: boolean
}

/** The last result of each scheme that was checked. A lasting problem is logged once as a warning, and its end once. */
const makeNotes = () => {
  const noteByScheme = new Map<string, Note>()
  const note = Effect.fnUntraced(function* (scheme: string, error: string | undefined) {
    const now = yield* monotonicMillis
    const before = noteByScheme.get(scheme)
    const hasBegun = before?.problem !== undefined && before.hasBegun
    const entry =
      before !== undefined && before.problem === error
        ? before
        : { problem: error, since: now, isSaid: false, hasBegun: error !== undefined && hasBegun }
    noteByScheme.set(scheme, entry)
    if (error === undefined && hasBegun)
      return yield* Effect.logInfo("settlements can be paid for again").pipe(Effect.annotateLogs({ scheme }))
    if (error === undefined || entry.isSaid || now - entry.since < warnAfterMillis) return
    entry.isSaid = true
    entry.hasBegun = true
    yield* Effect.logWarning(`settling is busy: ${error}`).pipe(Effect.annotateLogs({ scheme }))
  })
  return {
    note,
    schemes: () => [...noteByScheme.keys()],
    isFaulty: () => [...noteByScheme.values()].some(({ problem }) => problem !== undefined)
  }
}

interface SponsorReadings {
  readonly refresh: Effect.Effect<void, unknown>
  /** The last reading; undefined before the first. */
  readonly status: () => SponsorStatus | undefined
}

/** The reason why only an operator can fix the sponsor's funding, after a first reading if it arrives soon. */
const makeUnfunded = Effect.fnUntraced(function* ({ refresh, status: last }: SponsorReadings) {
  const { developmentAutoFund, feeCeilings, friendbotUrl } = yield* Network
  const { sponsor } = yield* Signer
  return Effect.gen(function* () {
    yield* Effect.ignore(Effect.timeoutOption(refresh, startWait))
    const status = last()
    if (status === undefined || (developmentAutoFund && Option.isSome(friendbotUrl))) return Option.none<string>()
    return Option.fromUndefinedOr(fundingProblem(status, feeCeilings(""), sponsor))
  })
})

export class Sponsor extends Context.Service<
  Sponsor,
  {
    /**
     * The reason why no settlement of a scheme can be paid for now, as a sentence; None if one can, or before the first
     * reading.
     */
    readonly problem: (scheme: string) => Effect.Effect<Option.Option<string>>
    /**
     * The same for a payment: it probes a remote signer first, and in the first seconds of a process waits for channels
     * that are being opened.
     */
    readonly unable: (scheme: string) => Effect.Effect<Option.Option<string>>
    /** The reason why nothing can be recorded now, not even the delivery of a success. */
    readonly unrecordable: Effect.Effect<Option.Option<string>>
    /** The same by the last write, for an answer that failed or is late: it tries no write. */
    readonly knownUnrecordable: Effect.Effect<Option.Option<string>>
    /**
     * For the start: the reason why no payment is paid for until an operator funds the sponsor. None if it has enough,
     * a faucet funds it, or the ledger did not answer soon.
     */
    readonly unfunded: Effect.Effect<Option.Option<string>>
    /** The last reading; None before the first. */
    readonly status: Effect.Effect<Option.Option<SponsorStatus>>
    /** Call this after a node reports that the sponsor cannot pay: its account is read again immediately. */
    readonly suspect: Effect.Effect<void>
  }
>()("tollkeeper/settlement/Sponsor") {
  static readonly layer = Layer.effect(
    Sponsor,
    Effect.gen(function* () {
      const network = yield* Network
      const limits = yield* Limits
      const signer = yield* Signer
      const clock = yield* LedgerClock
      const writes = yield* WriteProbe
      const readings = yield* makeReadings
      const notes = makeNotes()

      const errorOf = Effect.fnUntraced(function* (scheme: string) {
        const unsigned = yield* signer.problem
        if (unsigned !== undefined) return unsigned
        const [status, { asked }, openMax] = [readings.status(), yield* clock.fees, limits.pendingSettlementsMax]
        return status && sponsorProblem(status, asked, network.feeCeilings(scheme), signer.sponsor, openMax)
      })

      const problem = Effect.fnUntraced(function* (scheme: string) {
        // While nothing can be recorded, the state of the sponsor does not matter.
        const unwritable = yield* writes.problem
        if (unwritable !== undefined) return Option.some(unwritable)
        let problem = yield* errorOf(scheme)
        if (problem !== undefined) {
          yield* readings.readAgain.pipe(
            Effect.timeoutOption(patience),
            Effect.catch((error) => Effect.logDebug("the sponsor could not be read again", error))
          )
          problem = yield* errorOf(scheme)
        }
        yield* notes.note(scheme, problem)
        return Option.fromUndefinedOr(problem)
      }, withSpanIfSampled("Sponsor.problem"))

      const isFundedByFaucet = network.developmentAutoFund && Option.isSome(network.friendbotUrl)
      const openUntil = (yield* monotonicMillis) + openingMillis
      const mayOpen = Effect.fnUntraced(function* (scheme: string) {
        const status = readings.status()
        if (writes.known() !== undefined) return false
        if (status === undefined || (yield* monotonicMillis) >= openUntil) return false
        return isOpening(status, network.feeCeilings(scheme), isFundedByFaucet)
      })
      const unable = Effect.fnUntraced(function* (scheme: string) {
        yield* clock.attend
        yield* clock.caughtUp
        yield* signer.assure
        return yield* Effect.repeat(problem(scheme), {
          schedule: openingPolls,
          while: (problem) => (Option.isSome(problem) ? mayOpen(scheme) : Effect.succeed(false))
        })
      })

      const watch = yield* reconciler({
        id: "sponsor",
        every: Effect.map(clock.isAttended, (attended) => (attended || notes.isFaulty() ? every : everyUnattended)),
        turn: Effect.gen(function* () {
          yield* notes.isFaulty() ? readings.readAgain : readings.refresh
          for (const scheme of notes.schemes()) yield* notes.note(scheme, yield* errorOf(scheme))
        })
      })
      yield* clock.subscribe(watch.wake)

      return Sponsor.of({
        problem: problem,
        unable,
        unrecordable: Effect.map(writes.problem, Option.fromUndefinedOr),
        knownUnrecordable: Effect.sync(() => Option.fromUndefinedOr(writes.known())),
        unfunded: yield* makeUnfunded(readings),
        status: Effect.sync(() => Option.fromUndefinedOr(readings.status())),
        suspect: Effect.andThen(Effect.sync(readings.doubt), watch.wake)
      })
    })
  )

  /** A sponsor that can always pay, for tests of the code above it. */
  static readonly layerAble = Layer.succeed(Sponsor, {
    problem: () => Effect.succeedNone,
    unable: () => Effect.succeedNone,
    unrecordable: Effect.succeedNone,
    knownUnrecordable: Effect.succeedNone,
    unfunded: Effect.succeedNone,
    status: Effect.succeedNone,
    suspect: Effect.void
  })
}
