// One seed's world for agents that pay: processes of the tool server that die and restart, their shared store, and the
// faults at each call that leaves a process. A dead process causes no further effect and gets no answer; its fibers
// stay suspended, so that its finalizers do not run.
import { Clock, Context, Effect, References } from "effect"
import {
  type BudgetStore,
  BudgetUnavailable,
  type TransitionResult
} from "../../../plugins/mcp-tools-pay/budget/BudgetStore.ts"
import type { Reservation } from "../../../plugins/mcp-tools-pay/budget/Reservation.ts"
import { memoryStore } from "../../../plugins/mcp-tools-pay/budget/tableStore.ts"
import { makeRandom, type Random } from "../random.ts"
import { VirtualTime } from "../VirtualTime.ts"
import { AgentLedger } from "./AgentLedger.ts"

export interface Process {
  readonly name: string
  isAlive: boolean
}

/** A payment that was sent. */
export interface Sent {
  readonly id: string
  /** Key of its invocation. */
  readonly key: string
  readonly nonce: bigint
  readonly expirationLedger: number
  /** The network's ledger when its authorization was recorded, before signing. */
  readonly signedInLedger: number
}

/** Probabilities for each call that leaves a process. */
interface Faults {
  readonly slow: number
  readonly stall: number
  readonly crash: number
  readonly fail: number
}

const quiet: Faults = { slow: 0, stall: 0, crash: 0, fail: 0 }

export class AgentWorld {
  readonly random: Random
  readonly time: VirtualTime
  readonly ledger: AgentLedger
  readonly store: BudgetStore["Service"]
  readonly counts = new Map<string, number>()
  /** The store's reservations. */
  readonly reservations = new Map<string, Reservation>()
  /** Ledgers that recorded authorizations, by reservation, in order. */
  readonly #signedIn = new Map<string, number>()
  readonly #sentIds = new Set<string>()
  /** How long an acknowledged answer is replayed. */
  readonly replayMillis: number
  faults: Faults
  onCrash: (process: Process) => void = () => {}

  constructor(seed: number) {
    this.random = makeRandom(seed)
    const { int, pick } = this.random
    this.time = new VirtualTime(Date.UTC(2026, 0, 2, int(0, 23)))
    this.ledger = new AgentLedger(this.random, this.time)
    // The shared store: one table that every process uses.
    this.store = { ...Effect.runSync(memoryStore), isShared: true }
    this.replayMillis = pick([0, 60_000, 600_000])
    const crash = pick([0, 0.002, 0.01, 0.03])
    this.faults = { slow: pick([0.02, 0.2]), stall: pick([0, 0.003]), crash, fail: pick([0, 0.01, 0.05]) }
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  heal(): void {
    this.faults = quiet
    this.ledger.heal()
  }

  #crash(process: Process, where: string): Effect.Effect<never> {
    if (process.isAlive) {
      process.isAlive = false
      this.count(`crash ${where}`)
      this.onCrash(process)
    }
    return Effect.never
  }

  /** A point outside of calls where a process may die. */
  mayCrash(process: Process, where: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!process.isAlive) return Effect.never
      return this.random.chance(5 * this.faults.crash) ? this.#crash(process, where) : Effect.void
    })
  }

  /**
   * One call that leaves a process: it takes time, may fail before or after its effect, and the process may die before
   * or after it.
   */
  call<A, E, F>(
    process: Process,
    name: string,
    effect: Effect.Effect<A, E>,
    failure: (() => F) | undefined
  ): Effect.Effect<A, E | F> {
    const { random } = this
    const side = (where: string): Effect.Effect<void, F> =>
      Effect.suspend(() => {
        const millis = random.chance(this.faults.slow) ? random.int(200, 5_000) : random.int(1, 20)
        const stall = random.chance(this.faults.stall) ? random.int(10_000, 400_000) : 0
        if (stall > 0) this.count("process stalled")
        return Effect.sleep(millis + stall)
      }).pipe(
        Effect.andThen(
          Effect.suspend((): Effect.Effect<void, F> => {
            if (!process.isAlive) return Effect.never
            if (random.chance(this.faults.crash)) return this.#crash(process, `${where} ${name}`)
            if (failure === undefined || !random.chance(this.faults.fail)) return Effect.void
            this.count(`${name} failed ${where}`)
            return Effect.fail(failure())
          })
        )
      )
    return side("before").pipe(
      Effect.andThen(effect),
      Effect.tap(() => side("after"))
    )
  }

  #moved(id: string, { authorization, state }: TransitionResult): void {
    const one = this.reservations.get(id)!
    this.reservations.set(id, { ...one, state, authorization: authorization ?? one.authorization })
    if (state === "signed") this.#signedIn.set(id, this.ledger.sequence)
    this.count(`state ${state}`)
  }

  noteSent(id: string): void {
    this.#sentIds.add(id)
  }

  /** In the order of signing. */
  get sent(): ReadonlyArray<Sent> {
    return [...this.#signedIn].flatMap(([id, signedInLedger]) => {
      const { authorization, invocation } = this.reservations.get(id)!
      return this.#sentIds.has(id) && authorization !== undefined
        ? [{ id, key: invocation, signedInLedger, ...authorization }]
        : []
    })
  }

  /** The shared store from the view of one process. */
  storeOf(process: Process): BudgetStore["Service"] {
    const world = this
    const { store } = this
    const failure = () => new BudgetUnavailable({ cause: new Error("the connection is gone") })
    const reached = <A, E>(name: string, effect: Effect.Effect<A, E>) =>
      this.call(process, name, effect, failure) as Effect.Effect<A, BudgetUnavailable>
    return {
      reserve: (one, ...more) =>
        reached(
          "reserve",
          Effect.tap(store.reserve(one, ...more), (reserved) =>
            Effect.sync(() => reserved === "kept" && this.reservations.set(one.id, one))
          )
        ),
      move: (id, to) =>
        reached(
          `move to ${to.state}`,
          Effect.tap(store.move(id, to), (isMoved) => Effect.sync(() => isMoved && this.#moved(id, to)))
        ),
      open: reached("open", store.open),
      settleAcknowledged: (age) =>
        reached(
          "settle acknowledged",
          Effect.gen(function* () {
            yield* store.settleAcknowledged(age)
            for (const [id, one] of world.reservations)
              if (one.state === "acknowledged") {
                const { undelivered } = yield* store.ofInvocation(one.invocation)
                if (!undelivered.some((known) => known.id === id))
                  world.reservations.set(id, { ...one, state: "settled" })
              }
          })
        ),
      ofInvocation: (key) => reached("ofInvocation", store.ofInvocation(key)),
      keep: (id, kept) => reached(kept.content === undefined ? "keep payment" : "keep content", store.keep(id, kept)),
      kept: (id) => reached("kept", store.kept(id)),
      forget: (id) => reached("forget", store.forget(id)),
      totals: (...asked) => reached("totals", store.totals(...asked)),
      keepTotals: (...asked) => reached("keep totals", store.keepTotals(...asked)),
      channels: reached("channels", store.channels),
      keepChannel: (...asked) => reached("keep channel", store.keepChannel(...asked)),
      forgetChannel: (...asked) => reached("forget channel", store.forgetChannel(...asked)),
      holdChannel: store.holdChannel,
      receipts: (...asked) => reached("receipts", store.receipts(...asked)),
      isShared: true
    }
  }

  /** Services of every fiber. */
  get context(): Context.Context<never> {
    return Context.empty().pipe(
      Context.add(Clock.Clock, this.time.clock),
      Context.add(References.MinimumLogLevel, "None"),
      Context.add(References.TracerEnabled, false)
    ) as Context.Context<never>
  }
}
