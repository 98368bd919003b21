// One seed's world: a ledger with its nodes, a store, replicas that crash and restart, and the faults with their times.
// The settlement code in the replicas is the product's own; only its ports are simulated (`ports.ts`). An outcome is
// checked when it is recorded, against the possible later ledgers.
import { Clock, Context, Effect, References } from "effect"
import { CrashPoints } from "../../kernel/settlement/CrashPoints.ts"
import { ScanAbove, TransactionsPerQuestion } from "../../kernel/settlement/follower/scanLedgers.ts"
import type { Outcome } from "../../kernel/settlement/state/Settlement.ts"
import { Coverage, type Occurrence } from "./Coverage.ts"
import { type Faults, quiet, quietLedger } from "./Faults.ts"
import { channelsMax, channelsMin, keysOf } from "./keys.ts"
import { makeRandom, type Random } from "./random.ts"
import { type Authorization, SimulatedLedger, type Submission } from "./SimulatedLedger.ts"
import { SimulatedNode } from "./SimulatedNode.ts"
import type { Replica } from "./Replica.ts"
import { type Row, TwinStore } from "./TwinStore.ts"
import { VirtualTime } from "./VirtualTime.ts"

export class World {
  readonly seed: number
  readonly random: Random
  readonly time: VirtualTime
  readonly ledger: SimulatedLedger
  readonly store: TwinStore
  readonly coverage = new Coverage()
  readonly nodes: ReadonlyArray<SimulatedNode>
  /** Authorizations by the number in an operation. */
  readonly authorizations = new Map<number, Authorization>()
  /** Every envelope that was signed, by its outer hash. */
  readonly submissions = new Map<string, Submission>()
  /** Number of channels in each replica's settings; they may differ. */
  readonly channelCounts: ReadonlyArray<number>
  /** True: all nodes share one address. False: each is a separate endpoint. */
  readonly isBalanced: boolean
  /** Open settlements above which the follower searches ledgers. */
  readonly scanAbove: number
  /** The network's ledger when each settlement was recorded, or built again, by id. */
  readonly bornIn = new Map<string, number>()
  /** Invariants that were found broken during the run. */
  readonly broken: Array<string> = []
  faults: Faults = quiet
  faultsSeen = 0
  /** One endpoint forges successes; the others answer in time if they are asked to confirm. */
  get hasLiar(): boolean {
    return !this.isBalanced && this.nodes.some(({ forges }) => forges > 0)
  }
  /** The store has lost committed transactions. */
  hasLostCommits = false
  /** A stranger has used a channel. */
  hasUsurpers = false
  /** Called when a replica dies; set by the code that runs it. */
  onCrash: (replica: Replica) => void = () => {}

  constructor(seed: number) {
    this.seed = seed
    this.random = makeRandom(seed)
    this.scanAbove = seed % 2 === 0 ? 2 : 50
    const { chance, int } = this.random
    this.isBalanced = chance(0.4)
    // Some runs cross midnight, when budgets change their day.
    const midnight = Date.UTC(2026, 0, 2)
    const start = chance(0.3) ? midnight - int(10, 60) * 1_000 : midnight + 3_600_000
    if (start < midnight) this.coverage.count("two days")
    this.time = new VirtualTime(start)
    this.ledger = new SimulatedLedger(this.random, start)
    if (chance(0.5)) this.ledger.nonceLedgersMin = 15
    this.nodes = this.#makeNodes()
    const isTight = chance(0.2)
    this.store = new TwinStore(
      {
        leaseMillis: 5_000,
        pendingMax: chance(0.2) ? 3 : 1_000,
        perPrincipalStroops: isTight ? 200_000n : 2_000_000n,
        inAllStroops: isTight ? 450_000n : 5_000_000n
      },
      () => this.time.now
    )
    const most = int(channelsMin, channelsMax)
    this.channelCounts = [most, chance(0.25) ? int(channelsMin, most) : most]
    for (const channel of keysOf(most).signer.channels) {
      const sequence = BigInt(int(1, 1_000)) << 32n
      this.ledger.addChannel(channel, sequence)
      this.store.addChannel(channel, sequence)
    }
  }

  /** Three nodes. At least one retains the history, because a settlement that no node can decide needs an operator. */
  #makeNodes(): ReadonlyArray<SimulatedNode> {
    const { chance, int } = this.random
    return [0, 1, 2].map((number) => {
      const isSound = number === 0
      const retention = !isSound && chance(0.3) ? int(2, 10) : 1_000
      const node = new SimulatedNode(this.ledger, this.random, retention)
      if (isSound) return node
      node.lag = chance(0.4) ? int(1, 4) : 0
      node.hides = chance(0.25) ? 0.1 + 0.6 * this.random.next() : 0
      node.indexLag = chance(0.2) ? int(1, 6) : 0
      node.ahead = chance(0.2) ? 0.1 : 0
      return node
    })
  }

  /** A payment's envelope by its inner hash. */
  submissionOf(innerHash: string): Submission | undefined {
    return [...this.submissions.values()].find((one) => one.innerHash === innerHash && one.kind === "payment")
  }

  fault(what: Occurrence): void {
    this.faultsSeen += 1
    this.coverage.count(what)
  }

  /** From now on there are no faults. */
  heal(): void {
    this.faults = quiet
    this.ledger.faults = quietLedger
    this.ledger.surge = undefined
    this.ledger.isHalted = false
    for (const node of this.nodes) node.heal()
  }

  crash(replica: Replica, what: Occurrence): Effect.Effect<never> {
    return Effect.suspend(() => {
      this.kill(replica, what)
      return Effect.never
    })
  }

  /** From now on the replica's actions have no effect, and it sends nothing. */
  kill(replica: Replica, what: Occurrence): void {
    if (!replica.isAlive) return
    this.fault(what)
    replica.isAlive = false
    this.onCrash(replica)
  }

  /**
   * One call through a port: it takes time, it may fail before or after its effect, and the process may die before or
   * after it.
   */
  call<A, E>(
    replica: Replica,
    run: () => A,
    failures: { readonly before: () => E | undefined; readonly after: () => E | undefined }
  ): Effect.Effect<A, E> {
    const { random } = this
    const wait = Effect.suspend(() => {
      const millis = random.chance(this.faults.slow) ? random.int(200, 4_000) : random.int(1, 30)
      return Effect.sleep(millis)
    })
    const deathOr = <B, F>(next: () => Effect.Effect<B, F>): Effect.Effect<B, F> =>
      Effect.suspend(() =>
        !replica.isAlive
          ? Effect.never
          : random.chance(this.faults.crash)
            ? this.crash(replica, "crash at a port")
            : next()
      )
    const failOr = <B>(failure: E | undefined, next: () => Effect.Effect<B, E>): Effect.Effect<B, E> =>
      failure === undefined ? next() : Effect.fail(failure)
    return Effect.andThen(
      wait,
      deathOr(() =>
        failOr(failures.before(), () => {
          const value = run()
          return Effect.andThen(
            wait,
            deathOr(() => failOr(failures.after(), () => Effect.succeed(value)))
          )
        })
      )
    )
  }

  /** An outcome is final: no later ledger may contradict it. */
  checkEnd({ attempts, born }: Row, { state }: Outcome): void {
    if (state !== "failed" && state !== "expired") return
    for (const { outerHash } of attempts) {
      const submission = this.submissions.get(outerHash)
      if (submission !== undefined && this.ledger.canStillMove(submission))
        this.broken.push(`${born.authorizationKey} was called ${state} while ${outerHash.slice(0, 8)} could still land`)
    }
  }

  /** Only one envelope of a rebuilt settlement can land. */
  checkRebuild({ attempts, attemptsVoid, born }: Row): void {
    for (const { outerHash } of attempts.slice(0, attemptsVoid)) {
      const submission = this.submissions.get(outerHash)
      if (submission !== undefined && this.ledger.canStillMove(submission))
        this.broken.push(`${born.authorizationKey} was built again while ${outerHash.slice(0, 8)} could still land`)
    }
  }

  /** The services below every fiber of a replica: its skewed clock, disabled logs, and crash points. */
  context(replica: Replica): Context.Context<never> {
    const { clock } = this.time
    const millis = () => this.time.now + replica.skewMillis
    const nanos = () => BigInt(millis()) * 1_000_000n
    const skewed = {
      ...clock,
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos)
    } as Clock.Clock
    return Context.empty().pipe(
      Context.add(Clock.Clock, skewed),
      Context.add(References.MinimumLogLevel, "None"),
      Context.add(References.TracerEnabled, false),
      Context.add(ScanAbove, this.scanAbove),
      // Only by the number of open settlements: half of the seeds ask for each hash.
      Context.add(TransactionsPerQuestion, 0),
      Context.add(CrashPoints, (step: string) =>
        Effect.suspend(() => {
          if (!replica.isAlive) return Effect.never
          if (this.random.chance(this.faults.crashAtStep)) return this.crash(replica, `crash ${step}` as Occurrence)
          return this.random.chance(this.faults.stall) ? Effect.sleep(this.random.int(4_000, 15_000)) : Effect.void
        })
      )
    ) as Context.Context<never>
  }
}
