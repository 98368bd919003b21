// One run: the seed determines the world, its faults and their times. At least thirty payments go through two replicas
// of the real settlement code in a storm. Then all faults end, open settlements end, and some more payments are made
// under calm conditions. At the end the invariants and the share of settled payments are checked.
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import type { HttpServerRequest } from "effect/http"
import { ListenAt } from "../../kernel/http/ListenAt.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import type { SettleAnswer } from "../../kernel/payment/Answer.ts"
import { EventStreams } from "../../kernel/payment/http/EventStreams.ts"
import { Extensions } from "../../kernel/payment/Extension.ts"
import { makeDeliverSuccess } from "../../kernel/payment/http/deliverSuccess.ts"
import { Facilitator } from "../../kernel/payment/Facilitator.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { ChannelPool } from "../../kernel/settlement/channels/ChannelPool.ts"
import { Deliveries } from "../../kernel/settlement/delivery/Deliveries.ts"
import { Outcomes } from "../../kernel/settlement/follower/Outcomes.ts"
import { isOpen } from "../../kernel/settlement/state/Settlement.ts"
import { Supervisor } from "../../kernel/actor/Supervisor.ts"
import { planAccidents, skewOf, surveyChannels } from "./accidents.ts"
import type { Occurrence } from "./Coverage.ts"
import { conditionsOf } from "./Faults.ts"
import { type Reported, violations } from "./invariants.ts"
import { keysOf } from "./keys.ts"
import { type Liveness, livenessOf } from "./liveness.ts"
import { Observers, observingMillis, streamsLayer } from "./observers.ts"
import { ports, settleTimeoutMillis } from "./ports.ts"
import { type FirstRead, Reading, Replica } from "./Replica.ts"
import { planBatch } from "./batchPayments.ts"
import { calmPayment, paymentsMin, planPayment, principals, type Scenario } from "./Scenario.ts"
import { simulatedSchemes } from "./simulatedScheme.ts"
import { World } from "./World.ts"

export { paymentsMin } from "./Scenario.ts"

export interface Report {
  readonly seed: number
  readonly violations: ReadonlyArray<string>
  readonly payments: number
  readonly faults: number
  readonly liveness: Liveness
  readonly coverage: ReadonlyMap<string, number>
}

/** Minimum number of faults in a run. */
export const faultsMin = 3
/** Virtual time in which payments begin, and after which all faults end. */
const stormMillis = 60_000
/** Virtual time after which an unfinished run has failed. */
const calmMillis = 4_500_000
/** Virtual time after which only undecidable settlements are still open: an hour of ledgers ends them. */
const patienceMillis = 240_000
const hurriedMillis = 150
const paceMillis = 120_000
/** Share of batch payments in a storm. */
const batchShare = 0.3
/** Number of sequential payments under calm conditions. */
const calmPayments = 3
const calmEvery = 9_000
/** Time for a survey of the channels, and for the leases of dead processes to expire. */
const settleDown = 15_000
/** An answer may come this many milliseconds after its bound, regardless of clock changes. */
const answerSlack = 100

/** The product's own layers over a replica's ports. */
const replicaLayer = (world: World, replica: Replica) =>
  Facilitator.layer.pipe(
    Layer.provideMerge(
      Layer.effectDiscard(
        Effect.gen(function* () {
          const schemes = yield* Schemes
          for (const scheme of yield* simulatedSchemes(world.authorizations)) yield* schemes.register(scheme)
        })
      )
    ),
    Layer.provideMerge(Layer.mergeAll(Outcomes.layer, ChannelPool.layer, Schemes.layer, Deliveries.layer)),
    Layer.provideMerge(LedgerClock.layer),
    Layer.provideMerge(streamsLayer(world, replica)),
    Layer.provideMerge(Extensions.layer),
    Layer.provideMerge(Layer.merge(Supervisor.layer, ListenAt.layer)),
    Layer.provideMerge(ports(world, replica))
  )

/** An answer counts as sent once its handler has returned it. */
const noRequest = {} as HttpServerRequest.HttpServerRequest

interface Running {
  readonly replica: Replica
  settle: ((payment: Payment) => Effect.Effect<SettleAnswer>) | undefined
  streams: EventStreams["Service"] | undefined
  fiber: Fiber.Fiber<unknown, unknown> | undefined
}

const fork = <A, E>(world: World, replica: Replica, effect: Effect.Effect<A, E>) =>
  Effect.runForkWith(world.context(replica))(effect, { scheduler: world.time.scheduler })

/** A request to a replica. If a process dies while its fiber cannot be interrupted, its client is cut off. */
interface PendingRequest {
  readonly replica: Replica
  readonly cutOff: () => void
}

/** The replicas of a run: processes that die and restart. */
class Replicas {
  readonly running: Array<Running | undefined> = []
  readonly asking = new Map<Fiber.Fiber<unknown, unknown>, PendingRequest>()
  readonly #world: World

  constructor(world: World) {
    this.#world = world
    world.onCrash = (replica) => this.#end(replica)
    for (const slot of world.channelCounts.keys()) this.#start(slot)
  }

  #start(slot: number): void {
    const world = this.#world
    const count = world.channelCounts[slot]!
    if (count < world.store.channels.size) world.coverage.count("replica without some keys")
    const replica = new Replica(`replica-${slot}`, keysOf(count), skewOf(world))
    const entry: Running = { replica, settle: undefined, streams: undefined, fiber: undefined }
    const life = Effect.gen(function* () {
      const scope = yield* Scope.make()
      const services = yield* Layer.buildWithScope(replicaLayer(world, replica), scope)
      const { settle } = Context.get(services, Facilitator)
      const { answerNow, within } = yield* Effect.provideContext(makeDeliverSuccess, services)
      const noteAnswer = Effect.map(Reading, (read) => void (read.answeredAt = world.time.now))
      entry.settle = (payment) => within(noRequest, Effect.tap(Effect.flatMap(settle(payment), answerNow), noteAnswer))
      entry.streams = Context.get(services, EventStreams)
      return yield* Effect.onExit(Effect.never, (exit) => Scope.close(scope, exit as Exit.Exit<unknown>))
    })
    entry.fiber = fork(world, replica, life as Effect.Effect<never>)
    this.running[slot] = entry
  }

  #end(replica: Replica): void {
    const { random, time } = this.#world
    const slot = this.running.findIndex((entry) => entry?.replica === replica)
    const entry = this.running[slot]
    this.running[slot] = undefined
    this.#world.store.processes.delete(replica.process)
    // Clients of a dead process are cut off; its fibers stay suspended.
    time.after(0, () => {
      for (const [fiber, { cutOff, replica: of }] of this.asking) {
        if (of !== replica) continue
        fiber.interruptUnsafe()
        cutOff()
      }
      entry?.fiber?.interruptUnsafe()
    })
    time.after(random.int(200, 8_000), () => this.#start(slot))
  }
}

const kindOf = (answer: SettleAnswer): Occurrence | undefined => {
  if (answer._tag === "Settled") return "answer success"
  if (answer._tag === "Pending") return "answer pending"
  switch (answer.refusal.reason) {
    case "settle_ledger_temporarily_unavailable":
      return "answer busy"
    case "settle_ledger_already_settled":
      return "answer already settled"
    case "settle_ledger_authorization_spent":
      return "answer spent elsewhere"
    case "payment_identifier_conflict":
      return "answer conflict"
    case "settle_ledger_transaction_failed":
    case "settle_ledger_transaction_expired":
      return "answer failed"
  }
  return undefined
}

/** The clients: some hang up, and all retry while the answer may still change. */
class Clients {
  readonly received: Array<Reported> = []
  unfinished = 0
  isCalm = false
  /** Only undecidable settlements are still open, so ledgers close quickly. */
  isHurried = false
  readonly #world: World
  readonly #replicas: Replicas

  constructor(world: World, replicas: Replicas) {
    this.#world = world
    this.#replicas = replicas
  }

  ask = (payment: Payment, copies: number): void => {
    const { random, time } = this.#world
    for (let copy = 0; copy < copies; copy++) {
      this.unfinished += 1
      time.after(copy === 0 ? 0 : random.int(0, 3_000), () => this.#client(payment, 8))
    }
  }

  #client(payment: Payment, triesLeft: number): void {
    const { random, time } = this.#world
    const entry = random.pick(this.#replicas.running)
    const again = (millis: number) => {
      if (triesLeft > 0) time.after(millis, () => this.#client(payment, triesLeft - 1))
      else this.unfinished -= 1
    }
    if (entry?.settle === undefined) return again(random.int(500, 3_000))
    this.#settle(payment, entry.settle, entry.replica, again)
  }

  #settle(
    payment: Payment,
    settle: (payment: Payment) => Effect.Effect<SettleAnswer>,
    replica: Replica,
    again: (millis: number) => void
  ): void {
    const world = this.#world
    const { chance, int } = world.random
    const read: FirstRead = { at: undefined }
    const askedAt = world.time.now
    const asked = this.#roaming(payment)
    const fiber = fork(world, replica, Effect.provideService(settle(asked), Reading, read))
    const { asking } = this.#replicas
    const cutOff = () => {
      if (asking.delete(fiber)) again(int(500, 6_000))
    }
    asking.set(fiber, { replica, cutOff })
    if (!this.isCalm && chance(0.08)) {
      world.time.after(int(10, 6_000), () => {
        if (asking.has(fiber)) world.coverage.count("client hung up")
        fiber.interruptUnsafe()
      })
    }
    fiber.addObserver((exit) => {
      // A dead process answers no client.
      if (exit._tag === "Failure" || !replica.isAlive) return cutOff()
      asking.delete(fiber)
      const waited = (read.answeredAt ?? world.time.now) - askedAt
      if (waited > settleTimeoutMillis + answerSlack) world.broken.push(`a caller waited ${waited} ms`)
      this.#receive({ payment, readAt: read.at, receivedAt: world.time.now, answer: exit.value, replica }, again)
    })
  }

  /** A caller without a key may come from another address each time. */
  #roaming(payment: Payment): Payment {
    const { coverage, random } = this.#world
    if (payment.principal.keyed || !random.chance(0.4)) return payment
    coverage.count("another address")
    const { fingerprint } = payment
    return { ...payment, fingerprint, principal: { ...payment.principal, source: "ip:elsewhere" } }
  }

  #receive(reported: Reported, again: (millis: number) => void): void {
    const { coverage, random } = this.#world
    const { answer, payment } = reported
    const isRepeated =
      answer._tag === "Settled" && this.received.some((one) => one.payment === payment && one.answer._tag === "Settled")
    this.received.push(reported)
    const kind = isRepeated ? "answer stored success" : kindOf(answer)
    if (kind !== undefined) coverage.count(kind)
    const isHopeful =
      kind === "answer pending" || kind === "answer busy" || (kind === "answer success" && random.chance(0.3))
    if (isHopeful) again(random.int(500, 8_000))
    else this.unfinished -= 1
  }
}

/** Observers ask any replica for a stream, and are cut off when its process dies. */
const observe = (world: World, { asking, running }: Replicas): Observers =>
  new Observers(world, [undefined, principals[world.seed % principals.length]], (random, read, ended) => {
    const entry = random.pick(running)
    if (entry?.streams === undefined) return ended()
    const fiber = fork(world, entry.replica, read(entry.streams))
    const cutOff = () => {
      if (asking.delete(fiber)) ended()
    }
    asking.set(fiber, { replica: entry.replica, cutOff })
    fiber.addObserver(cutOff)
  })

const countEnds = ({ coverage, ledger, store }: World): void => {
  const rows = [...store.rows.values()]
  for (const { state } of rows)
    if (!isOpen(state) && state !== "unresolved") coverage.count(`state ${state}` as Occurrence)
  for (const { act } of ledger.batchLog) coverage.count(`batch ${act.kind}`)
  for (const { authorization, innerHash, kind, outerHash, succeeded } of ledger.log) {
    if (authorization?.act !== undefined && !succeeded) coverage.count("batch call too late")
    if (kind === "cancel") coverage.count("cancel landed")
    const row = rows.find(({ born }) => born.innerHash === innerHash)
    if (row !== undefined && row.attempts.findIndex((attempt) => attempt.outerHash === outerHash) > 0)
      coverage.count("outbid landed")
  }
}

/** All faults end after the storm; then open settlements have to end. */
const runStorm = (world: World, scenario: Scenario, clients: Clients, replicas: Replicas): string | undefined => {
  const { ledger, random, store, time } = world
  const { chance, int } = random
  const end = time.now + stormMillis
  const conditions = conditionsOf(random)
  world.faults = conditions.faults
  ledger.faults = conditions.ledger
  const closeLedgers = () => {
    ledger.close(time.now)
    const slow = chance(0.05) && !clients.isCalm ? int(8_000, 15_000) : int(3_500, 6_000)
    time.after(clients.isHurried ? hurriedMillis : slow, closeLedgers)
  }
  time.after(1_000, closeLedgers)
  const survey = () => {
    surveyChannels(world)
    time.after(5_000, survey)
  }
  time.after(5_000, survey)
  const count = int(paymentsMin, paymentsMin + 10)
  for (let number = 1; number <= count; number++)
    time.after(int(500, stormMillis - 15_000), () => (chance(batchShare) ? planBatch : planPayment)(scenario))
  const someReplica = () => random.pick(replicas.running)?.replica
  planAccidents({ world, millis: stormMillis, isFair: conditions.isFair, someReplica, faultsMin })
  time.at(end, () => {
    clients.isCalm = true
    world.heal()
  })
  const isOver = () =>
    clients.isCalm && clients.unfinished === 0 && [...store.rows.values()].every(({ state }) => !isOpen(state))
  if (time.run(isOver, end + patienceMillis)) return undefined
  clients.isHurried = clients.unfinished === 0
  const isFinished = time.run(isOver, end + calmMillis)
  if (clients.isHurried) {
    clients.isHurried = false
    // Wait until the ledger's close interval is measured again.
    time.run(() => false, time.now + paceMillis)
  }
  if (isFinished) return undefined
  return `not over ${calmMillis / 1_000} s after everything healed: ${clients.unfinished} clients wait`
}

/** Nothing keeps these payments from settling. */
const runCalm = (world: World, scenario: Scenario, clients: Clients): ReadonlySet<Payment> => {
  const { store, time } = world
  world.heal()
  store.limits = { ...store.limits, pendingMax: 1_000, perPrincipalStroops: 1n << 40n, inAllStroops: 1n << 40n }
  time.run(() => false, time.now + settleDown)
  const calm = new Set<Payment>()
  for (let number = 0; number < calmPayments; number++) {
    time.after(number * calmEvery, () => {
      const payment = calmPayment(scenario, principals[number % principals.length]!)
      calm.add(payment)
      clients.ask(payment, 1)
    })
  }
  const isOver = () =>
    calm.size === calmPayments &&
    clients.unfinished === 0 &&
    [...store.rows.values()].every(({ state }) => !isOpen(state))
  time.run(isOver, time.now + 120_000)
  // Earlier work may still release a lease, and a watch reads nodes that do not all have its ledgers.
  time.run(() => false, time.now + 6_000)
  const isUnwatched = () => [...store.rows.values()].every(({ watchAfter }) => watchAfter === undefined)
  time.run(isUnwatched, time.now + patienceMillis)
  return calm
}

export const simulate = (seed: number): Report => {
  const world = new World(seed)
  const replicas = new Replicas(world)
  const clients = new Clients(world, replicas)
  const payments: Array<Payment> = []
  const observers = observe(world, replicas)
  const scenario: Scenario = { world, payments, ask: clients.ask }
  const unfinished = runStorm(world, scenario, clients, replicas)
  const calm = runCalm(world, scenario, clients)
  countEnds(world)
  const broken = [...world.broken, ...violations(world, clients.received)]
  world.time.run(() => observers.areComplete, world.time.now + observingMillis)
  broken.push(...observers.violations)
  if (unfinished !== undefined) broken.push(unfinished)
  const liveness = livenessOf(world, calm, payments)
  if (liveness.calmSettled < liveness.calmAsked)
    broken.push(`only ${liveness.calmSettled} of ${liveness.calmAsked} payments under calm conditions settled`)
  if (payments.length < paymentsMin) broken.push(`only ${payments.length} payments`)
  if (world.faultsSeen < faultsMin) broken.push(`only ${world.faultsSeen} faults`)
  return {
    seed,
    violations: broken,
    payments: payments.length,
    faults: world.faultsSeen,
    liveness,
    coverage: world.coverage.counts
  }
}
