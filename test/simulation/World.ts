// One seed's world: a ledger with its nodes, a store, replicas that crash and come back, and what goes wrong when. The
// settlement code in the replicas is the product's own; only its ports are played: the store, the RPC, the clock, the
// crypto's randomness.
import { NodeServices } from "@effect/platform-node"
import { Keypair } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Clock, Context, Duration, Effect, Layer, Option, Redacted, References } from "effect"
import { SqlError } from "effect/sql"
import { Budget } from "../../kernel/budget/Budget.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import type { Transaction } from "../../kernel/ledger/Envelope.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import { LedgerUnavailable } from "../../kernel/ledger/LedgerUnavailable.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Host } from "../../kernel/platform/Host.ts"
import { ChannelStore } from "../../kernel/settlement/channels/ChannelStore.ts"
import { CrashPoints } from "../../kernel/settlement/CrashPoints.ts"
import { Leases } from "../../kernel/settlement/Leases.ts"
import { ScanAbove } from "../../kernel/settlement/scanLedgers.ts"
import { Settlements } from "../../kernel/settlement/Settlements.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { Vault } from "../../kernel/signer/Vault.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { Coverage, type Wanted } from "./Coverage.ts"
import { makeRandom, type Random } from "./random.ts"
import { SimulatedLedger, type Submission } from "./SimulatedLedger.ts"
import { TwinStore } from "./TwinStore.ts"
import { VirtualTime } from "./VirtualTime.ts"

/** How often what goes wrong, each a probability per call. */
export interface Faults {
  readonly rpcAway: number
  readonly sendTryAgain: number
  readonly sendError: number
  readonly sendLost: number
  readonly storeBefore: number
  readonly storeAfter: number
  readonly crash: number
  readonly crashAtStep: number
  readonly slow: number
  /** A process stands still between two steps, longer than a lease lives. */
  readonly stall: number
}

export const quiet: Faults = {
  rpcAway: 0,
  sendTryAgain: 0,
  sendError: 0,
  sendLost: 0,
  storeBefore: 0,
  storeAfter: 0,
  crash: 0,
  crashAtStep: 0,
  slow: 0,
  stall: 0
}

/** A node of the network that a replica may be answered by. */
interface Node {
  lag: number
  readonly retention: number
}

const ceilings = { resourceStroopsMax: 200_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n }
export const networkId = "ledger:testnet"
const channelCount = 6

const limitValues = {
  settleTimeout: Duration.seconds(25),
  settlePoll: Duration.millis(500),
  recoveryPeriod: Duration.seconds(15),
  rpcTimeout: Duration.seconds(5),
  channelLease: Duration.seconds(5),
  channelWait: undefined,
  pendingSettlementsMax: 1_000,
  sponsoredPerPrincipalPerDayStroopsMax: 0n,
  sponsoredPerDayStroopsMax: 0n,
  expiryToleranceLedgers: 4,
  verifyPerSecond: 0,
  settlePerSecond: 0
}

const network = Network.of({
  id: networkId,
  passphrase: "Test SDF Network ; September 2015",
  rpcUrls: [],
  friendbotUrl: Option.none(),
  sponsorSecret: Option.some(Redacted.make(Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7)).secret())),
  channelSecrets: Option.none(),
  channelCount,
  channelCountMax: channelCount,
  channelBalanceStroopsMin: 1n,
  developmentAutoFund: false,
  timeoutSecondsMax: 300,
  uptoContract: Option.none(),
  assets: new Map(),
  feeCeilings: () => ceilings
})

/** Signatures are not what is tried here, and the simulated ledger does not read them. */
const unsigned = Layer.effect(
  Crypto,
  Effect.map(Crypto, (crypto) => Crypto.of({ ...crypto, ed25519Sign: () => new Uint8Array(64) }))
).pipe(Layer.provide(NodeCrypto.layer))

const signing = Signer.layer.pipe(
  Layer.provide(Vault.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      unsigned,
      NodeServices.layer,
      Layer.succeed(Network, network),
      Layer.succeed(Host, { name: "simulation", stateFolder: "." })
    )
  )
)
/** The real signer and crypto: they have no state, so all runs of the process share them. */
const shared = await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      return { signer: yield* Signer, crypto: yield* Crypto }
    }).pipe(Effect.provide(signing))
  )
)

/** The number that a simulated operation carries in its last argument. */
const numberOf = (transaction: Transaction): string | undefined => {
  const body = transaction.operations[0]?.body
  if (body?.type !== 24 || body.invokeHostFunctionOp.hostFunction.type !== 0) return undefined
  const last: xdr.ScValWire | undefined = body.invokeHostFunctionOp.hostFunction.invokeContract.args.at(-1)
  return last?.type === 5 ? String(last.u64) : undefined
}

/** When a request first looked at the store; a twin of a settlement is who looked before it was recorded. */
export interface FirstLook {
  at: number | undefined
}
export const Looking = Context.Reference<FirstLook>("test/simulation/Looking", {
  defaultValue: () => ({ at: undefined })
})

export class Replica {
  readonly name: string
  isAlive = true
  /** How far this machine's clock is off, milliseconds. */
  skewMillis = 0
  constructor(name: string) {
    this.name = name
  }
}

export class World {
  readonly random: Random
  readonly time: VirtualTime
  readonly ledger: SimulatedLedger
  readonly store: TwinStore
  readonly coverage = new Coverage()
  nodes: ReadonlyArray<Node>
  faults: Faults = quiet
  faultsSeen = 0
  /** Called when a replica dies; set by who runs it. */
  onCrash: (replica: Replica) => void = () => {}
  readonly #submissions = new Map<string, Submission>()
  /** Authorization and its last ledger by the number an operation carries. */
  readonly authorizations = new Map<string, { readonly key: string; readonly expiresLedger: number }>()

  /** Open settlements above which the follower looks through ledgers. */
  readonly scanAbove: number

  constructor(seed: number) {
    this.random = makeRandom(seed)
    this.scanAbove = seed % 2 === 0 ? 2 : 50
    const { chance, int } = this.random
    // Some runs cross midnight, where budgets change their day.
    const midnight = Date.UTC(2026, 0, 2)
    const start = chance(0.3) ? midnight - int(10, 60) * 1_000 : midnight + 3_600_000
    if (start < midnight) this.coverage.count("two days")
    this.time = new VirtualTime(start)
    this.ledger = new SimulatedLedger(this.random, start)
    this.nodes = [0, 1, 2].map(() => ({
      lag: chance(0.4) ? int(1, 4) : 0,
      retention: chance(0.3) ? int(2, 10) : 1_000
    }))
    // One node at least remembers: what none of them can tell is for an operator.
    this.nodes = [{ lag: 0, retention: 1_000 }, ...this.nodes.slice(1)]
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
    for (const channel of shared.signer.channels.slice(0, int(2, channelCount))) {
      const sequence = BigInt(int(1, 1_000)) << 32n
      this.ledger.channels.set(channel, sequence)
      this.store.addChannel(channel, sequence)
    }
  }

  fault(what: Wanted): void {
    this.faultsSeen += 1
    this.coverage.count(what)
  }

  crash(replica: Replica, what: Wanted): Effect.Effect<never> {
    return Effect.suspend(() => {
      this.kill(replica, what)
      return Effect.never
    })
  }

  /** From now on nothing the replica does has an effect, and nobody hears from it. */
  kill(replica: Replica, what: Wanted): void {
    if (!replica.isAlive) return
    this.fault(what)
    replica.isAlive = false
    this.onCrash(replica)
  }

  /**
   * One call through a port: it takes time, it may fail before or after it had its effect, and the process may die on
   * either side.
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

  #stored<A>(replica: Replica, run: () => A): Effect.Effect<A, SqlError.SqlError> {
    const failure = (probability: number, what: Wanted) => {
      if (!this.random.chance(probability)) return undefined
      this.fault(what)
      return new SqlError.SqlError({
        reason: new SqlError.ConnectionError({ cause: new Error("the connection is gone") } as never)
      } as never)
    }
    return this.call(replica, run, {
      before: () => failure(this.faults.storeBefore, "store failed before"),
      after: () => failure(this.faults.storeAfter, "store failed after")
    })
  }

  #asked<A>(replica: Replica, operation: string, run: (node: Node) => A): Effect.Effect<A, LedgerUnavailable> {
    const node = this.random.pick(this.nodes)
    const failure = () => {
      if (!this.random.chance(this.faults.rpcAway)) return undefined
      this.fault("rpc away")
      return new LedgerUnavailable({ operation, message: "away" })
    }
    return this.call(replica, () => run(node), { before: failure, after: failure })
  }

  #latest(node: Node): number {
    if (node.lag > 0) this.coverage.count("node behind")
    if (node.retention < 1_000) this.coverage.count("node forgets")
    return this.ledger.sequence - node.lag
  }

  rpc(replica: Replica): LedgerRpc["Service"] {
    const { ledger, random } = this
    const latestLedger = Effect.suspend(() =>
      this.#asked(replica, "getLatestLedger", (node) => ({
        sequence: this.#latest(node),
        closedAtSeconds: Math.floor(ledger.closedAtMillis / 1_000) - node.lag * 5,
        protocolVersion: 26,
        endpoint: 0
      }))
    )
    return LedgerRpc.of({
      latestLedger,
      // One address, and any of the nodes behind it.
      latestLedgers: Effect.map(Effect.option(latestLedger), Option.toArray),
      setUnfit: () => Effect.void,
      feeStats: Effect.succeed({ p50: 100n, p90: 100n, p99: 1_000n }),
      // The envelope of a simulated question is the authorization it is about.
      simulate: (authorization) =>
        Effect.suspend(() =>
          this.#asked(replica, "simulateTransaction", (node) => {
            const latestLedger = this.#latest(node)
            const by = ledger.spent.get(authorization)
            const isKnown = by !== undefined && (by === "elsewhere" || ledger.included.get(by)!.ledger <= latestLedger)
            return isKnown
              ? { _tag: "Refused" as const, latestLedger, code: "Error(Auth, ExistingValue)", detail: "" }
              : {
                  _tag: "Simulated" as const,
                  latestLedger,
                  resourceFeeStroops: 40_000n,
                  sorobanDataXdr: new Uint8Array(),
                  eventsXdr: [],
                  authXdr: []
                }
          })
        ),
      send: (_envelope, outerHash) => Effect.suspend(() => this.#send(replica, outerHash)),
      transaction: (hash) =>
        Effect.suspend(() =>
          this.#asked(replica, "getTransaction", (node) => {
            const latestLedger = this.#latest(node)
            const oldestLedger = Math.max(1, latestLedger - node.retention)
            const found = ledger.included.get(hash)
            return found !== undefined && found.ledger <= latestLedger && found.ledger >= oldestLedger
              ? { _tag: "Included" as const, latestLedger, executed: { ...found, transfers: Option.none() } }
              : { _tag: "NotFound" as const, latestLedger, oldestLedger }
          })
        ),
      scan: ({ fromLedger, wanted }) =>
        Effect.suspend(() =>
          this.#asked(replica, "getTransactions", (node) => {
            const latestLedger = this.#latest(node)
            const oldestLedger = Math.max(1, latestLedger - node.retention)
            if (fromLedger < oldestLedger || fromLedger > latestLedger) return undefined
            this.coverage.count("ledgers scanned")
            const found = ledger.log.filter(
              (one) => one.ledger >= fromLedger && one.ledger <= latestLedger && wanted(one.outerHash)
            )
            return {
              scannedTo: latestLedger,
              oldestLedger,
              found: found.map((one) => ({
                executed: { ...one, transfers: Option.none() },
                envelope: undefined as never
              }))
            }
          })
        ).pipe(
          Effect.flatMap((answer) =>
            answer === undefined
              ? Effect.fail(new LedgerUnavailable({ operation: "getTransactions", message: "outside its range" }))
              : Effect.succeed(answer)
          )
        ),
      accounts: (addresses) =>
        Effect.suspend(() =>
          this.#asked(replica, "getLedgerEntries", () => ({
            latestLedger: ledger.sequence,
            accounts: new Map(
              addresses.map((address) => [
                address,
                { address, balanceStroops: 1n, sequence: ledger.channels.get(address)!, sequenceLedger: Option.none() }
              ])
            )
          }))
        ),
      nonceSpent: () =>
        Effect.suspend(() => (random.chance(0) ? Effect.never : Effect.die("not asked in the simulation")))
    })
  }

  #send(replica: Replica, outerHash: string): ReturnType<LedgerRpc["Service"]["send"]> {
    const { random } = this
    const { sendError, sendLost, sendTryAgain } = this.faults
    const seen = (answer: Effect.Success<ReturnType<LedgerRpc["Service"]["send"]>>) => {
      this.coverage.count(`send ${answer._tag}` as Wanted)
      return answer
    }
    return this.call(
      replica,
      () => {
        const submission = this.#submissions.get(outerHash)
        if (submission === undefined) throw new Error("an envelope that nobody signed")
        if (random.chance(sendTryAgain)) {
          this.faultsSeen += 1
          return seen({ _tag: "TryAgainLater" })
        }
        if (random.chance(sendError / 2)) {
          this.faultsSeen += 1
          return seen({ _tag: "Error", code: "txInsufficientFee" })
        }
        const lost = random.chance(sendLost)
        if (lost && random.chance(0.5)) {
          this.faultsSeen += 1
          return seen({ _tag: "Lost", message: "never arrived" })
        }
        const taken = this.ledger.submit(submission)
        if (lost) {
          this.fault("send taken but lost")
          return seen({ _tag: "Lost", message: "the answer was lost" })
        }
        if (taken === "Taken" && random.chance(sendError / 2)) {
          this.fault("send Error but taken")
          return seen({ _tag: "Error", code: "txBadAuth" })
        }
        return seen(
          taken === "Taken"
            ? { _tag: "Pending" }
            : taken === "Duplicate"
              ? { _tag: "Duplicate" }
              : { _tag: "Error", code: `tx${taken}` }
        )
      },
      { before: (): undefined => undefined, after: (): undefined => undefined }
    ) as ReturnType<LedgerRpc["Service"]["send"]>
  }

  /** Registers what was signed, so that the ledger knows what an envelope holds without decoding it. */
  signer(): Signer["Service"] {
    const { signer } = shared
    const register = (
      transaction: Transaction,
      channel: string,
      signed: { innerHash: string; outerHash: string },
      feeStroops: bigint
    ) => {
      const number = numberOf(transaction)
      const authorization = number === undefined ? undefined : this.authorizations.get(number)!
      this.#submissions.set(signed.outerHash, {
        innerHash: signed.innerHash,
        outerHash: signed.outerHash,
        kind: authorization === undefined ? "cancel" : "payment",
        channel,
        sequence: transaction.seqNum as bigint,
        ledgerMax: (transaction.cond as any).v2.ledgerBounds.maxLedger,
        feeStroops,
        authorization: authorization?.key,
        authorizationExpiresLedger: authorization?.expiresLedger ?? 0
      })
      return signed as never
    }
    return Signer.of({
      ...signer,
      signSettlement: (request) =>
        Effect.map(signer.signSettlement(request), (signed) =>
          register(request.transaction, request.channel, signed, 40_000n + request.inclusionStroops)
        ),
      signCancel: (request) =>
        Effect.map(signer.signCancel(request), (signed) =>
          register(request.transaction, request.channel, signed, request.inclusionStroops)
        )
    })
  }

  /** The ports of one replica. */
  ports(replica: Replica) {
    const { store } = this
    const stored = <A>(run: () => A) => Effect.suspend(() => this.#stored(replica, run))
    const holder = `${replica.name} ${this.random.int(0, 1e9)}`
    let held: string | undefined
    return Layer.mergeAll(
      Layer.succeed(
        Settlements,
        Settlements.of({
          find: (query) =>
            Effect.flatMap(Looking, (look) =>
              stored(() => {
                look.at ??= this.time.now
                return store.find(query)
              })
            ),
          record: (settlement) =>
            stored(() => {
              const answer = store.record(settlement)
              if (answer._tag === "FenceLost") this.coverage.count("fence lost")
              if (answer._tag === "Known") this.coverage.count("recorded twice")
              if (answer._tag === "BudgetExceeded") this.coverage.count("over budget")
              if (answer._tag === "TooManyOpen") this.coverage.count("too many open")
              return answer
            }),
          addAttempt: (id, attempt) => stored(() => store.addAttempt(id, attempt)),
          noteSent: (id, number, status, ledger) => stored(() => store.noteSent(id, number, status, ledger)),
          open: (limit) => stored(() => store.open(limit)),
          resolve: (id, outcome) => stored(() => store.resolve(id, outcome)),
          adopt: () => Effect.die("the store of the simulation loses nothing"),
          claimDelivery: (id) => stored(() => store.claimDelivery(id)),
          openCount: stored(() => store.openCount()),
          byIds: (ids) => (ids.length === 0 ? Effect.succeed([]) : stored(() => store.byIds(ids))),
          lookup: () => Effect.succeed([])
        })
      ),
      Layer.succeed(
        ChannelStore,
        ChannelStore.of({
          take: stored(() => {
            const lease = store.take()
            if (Option.isNone(lease)) this.coverage.count("no channel free")
            return lease
          }),
          release: (lease) => stored(() => store.release(lease)),
          learn: (address, sequence, asOfLedger) => stored(() => store.learn(address, sequence, asOfLedger)),
          correct: () => Effect.die("nobody else uses the channels of the simulation"),
          counts: stored(() => store.counts())
        })
      ),
      Layer.succeed(
        Leases,
        Leases.of({
          hold: (name, duration) =>
            stored(() => {
              const isHeld = store.hold(name, holder, Duration.toMillis(duration))
              if (isHeld && held === undefined && this.#heldBefore !== undefined && this.#heldBefore !== holder)
                this.coverage.count("lease taken over")
              if (isHeld) held = this.#heldBefore = holder
              return isHeld
            })
        })
      ),
      Layer.succeed(
        Budget,
        Budget.of({
          fits: (principal, stroops) => stored(() => store.fits(principal, stroops)),
          reserve: () => Effect.die("part of the store's record"),
          charge: () => Effect.die("part of the store's adoption"),
          commit: () => Effect.die("part of the store's resolve")
        })
      ),
      Layer.succeed(LedgerRpc, this.rpc(replica)),
      Layer.succeed(Signer, this.signer()),
      Layer.succeed(Network, network),
      Layer.succeed(Limits, limitValues),
      Layer.succeed(Crypto, Crypto.of({ ...shared.crypto, randomBytes: (length) => this.random.bytes(length) }))
    )
  }

  #heldBefore: string | undefined

  /** What stands below every fiber of a replica: time, its own idea of time, silence, and where it may die. */
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
      Context.add(CrashPoints, (step: string) =>
        Effect.suspend(() => {
          if (!replica.isAlive) return Effect.never
          if (this.random.chance(this.faults.crashAtStep)) return this.crash(replica, `crash ${step}` as Wanted)
          return this.random.chance(this.faults.stall) ? Effect.sleep(this.random.int(4_000, 15_000)) : Effect.void
        })
      )
    ) as Context.Context<never>
  }
}
