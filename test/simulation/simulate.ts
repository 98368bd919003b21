// One run: a seed decides the world, what goes wrong in it and when; at least thirty payments go through two replicas
// of the real settlement code; then everything heals, and when all is quiet the invariants are looked at.
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import type { SettleAnswer } from "../../kernel/payment/Answer.ts"
import { Facilitator } from "../../kernel/payment/Facilitator.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { ChannelPool } from "../../kernel/settlement/channels/ChannelPool.ts"
import { Outcomes } from "../../kernel/settlement/Outcomes.ts"
import { isOpen } from "../../kernel/settlement/Settlement.ts"
import { Supervisor } from "../../kernel/Supervisor.ts"
import type { Wanted } from "./Coverage.ts"
import { type Told, violations } from "./invariants.ts"
import { authorizationOf, makeSimulatedScheme, paymentOf } from "./simulatedScheme.ts"
import { type FirstLook, Looking, quiet, Replica, World } from "./World.ts"

export interface Report {
  readonly seed: number
  readonly violations: ReadonlyArray<string>
  readonly payments: number
  readonly faults: number
  readonly coverage: ReadonlyMap<string, number>
}

/** Payments and faults that a run has at least. */
export const paymentsMin = 30
export const faultsMin = 3
/** Virtual time in which payments begin, and after which everything heals. */
const stormMillis = 60_000
/** Virtual time after which a run that is not over has lost something. */
const calmMillis = 600_000

/** The product's own layers over a replica's ports. */
const replicaLayer = (world: World, replica: Replica) =>
  Facilitator.layer.pipe(
    Layer.provideMerge(
      Layer.effectDiscard(
        Effect.gen(function* () {
          yield* (yield* Schemes).register(yield* makeSimulatedScheme)
        })
      )
    ),
    Layer.provideMerge(Layer.mergeAll(Outcomes.layer, ChannelPool.layer, Schemes.layer)),
    Layer.provideMerge(LedgerClock.layer),
    Layer.provideMerge(Supervisor.layer),
    Layer.provideMerge(world.ports(replica))
  )

export const simulate = (seed: number): Report => {
  const world = new World(seed)
  const { coverage, ledger, random, store, time } = world
  const { chance, int, pick } = random
  const end = time.now + stormMillis
  const told: Array<Told> = []
  const running: Array<
    | { replica: Replica; facilitator: Facilitator["Service"] | undefined; fiber: Fiber.Fiber<unknown, unknown> }
    | undefined
  > = []
  const asking = new Map<Fiber.Fiber<unknown, unknown>, Replica>()
  let isCalm = false
  let unfinished = 0

  const fork = <A, E>(replica: Replica, effect: Effect.Effect<A, E>) =>
    Effect.runForkWith(world.context(replica))(effect, { scheduler: time.scheduler })

  const start = (slot: number) => {
    const replica = new Replica(`replica-${slot}`)
    replica.skewMillis = chance(0.3) ? int(-20_000, 20_000) : 0
    const entry: NonNullable<(typeof running)[number]> = { replica, facilitator: undefined, fiber: undefined as never }
    const life = Effect.gen(function* () {
      const scope = yield* Scope.make()
      const services = yield* Layer.buildWithScope(replicaLayer(world, replica), scope)
      entry.facilitator = Context.get(services, Facilitator)
      return yield* Effect.onExit(Effect.never, (exit) => Scope.close(scope, exit as Exit.Exit<unknown>))
    })
    ;(entry as { fiber: unknown }).fiber = fork(replica, life as Effect.Effect<never>)
    running[slot] = entry
  }

  world.onCrash = (replica) => {
    const slot = running.findIndex((entry) => entry?.replica === replica)
    const entry = running[slot]
    running[slot] = undefined
    // Clients of a dead process are cut off; its fibers are left where they stand.
    time.after(0, () => {
      for (const [fiber, of] of asking) if (of === replica) fiber.interruptUnsafe()
      entry?.fiber.interruptUnsafe()
    })
    time.after(int(200, 8_000), () => start(slot))
  }

  const closeLedgers = () => {
    ledger.close(time.now)
    time.after(chance(0.05) && !isCalm ? int(8_000, 15_000) : int(3_500, 6_000), closeLedgers)
  }

  const kindOf = (answer: SettleAnswer): Wanted | undefined => {
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

  /** One client: asks some replica, may hang up, and comes back while the answer leaves it hope. */
  const client = (payment: Payment, triesLeft: number) => {
    const entry = pick(running)
    const again = (millis: number) => {
      if (triesLeft > 0) time.after(millis, () => client(payment, triesLeft - 1))
      else unfinished -= 1
    }
    if (entry?.facilitator === undefined) return again(int(500, 3_000))
    const { facilitator, replica } = entry
    const look: FirstLook = { at: undefined }
    const fiber = fork(replica, Effect.provideService(facilitator.settle(payment), Looking, look))
    asking.set(fiber, replica)
    const hangsUp = !isCalm && chance(0.08)
    if (hangsUp) {
      time.after(int(10, 6_000), () => {
        if (asking.has(fiber)) coverage.count("client hung up")
        fiber.interruptUnsafe()
      })
    }
    fiber.addObserver((exit) => {
      asking.delete(fiber)
      // A process that is dead answers nobody.
      if (exit._tag === "Failure" || !replica.isAlive) return again(int(500, 6_000))
      const answer = exit.value
      const isRepeated =
        answer._tag === "Settled" && told.some((one) => one.payment === payment && one.answer._tag === "Settled")
      told.push({ payment, lookedAt: look.at, answer })
      const kind = isRepeated ? "answer stored success" : kindOf(answer)
      if (kind !== undefined) coverage.count(kind)
      const hopeful = kind === "answer pending" || kind === "answer busy" || (kind === "answer success" && chance(0.3))
      return hopeful ? again(int(500, 8_000)) : void (unfinished -= 1)
    })
  }

  // The payments: most alone, some asked for several times at once, some with an identifier, some spent elsewhere
  // meanwhile.
  const payments: Array<Payment> = []
  const count = int(paymentsMin, paymentsMin + 10)
  const plan = (number: number) => {
    const expiresLedger = ledger.sequence + int(2, 18)
    const isIdentified = chance(0.6)
    const reused = isIdentified && payments.length > 0 && chance(0.05) ? pick(payments) : undefined
    const identifier = !isIdentified
      ? undefined
      : reused?.identifier._tag === "Some"
        ? reused.identifier.value
        : `identifier-${number}`
    const payment = paymentOf({ number, expiresLedger, identifier, principal: pick(["key:a", "key:b", "ip:c"]) })
    payments.push(payment)
    world.authorizations.set(String(number), { key: authorizationOf(payment), expiresLedger })
    const copies = chance(0.25) ? int(2, 4) : 1
    for (let copy = 0; copy < copies; copy++) {
      unfinished += 1
      time.after(copy === 0 ? 0 : int(0, 3_000), () => client(payment, 8))
    }
    if (chance(0.06)) {
      time.after(int(0, 8_000), () => {
        if (!ledger.spent.has(authorizationOf(payment))) coverage.count("front-run")
        ledger.spendElsewhere(authorizationOf(payment))
      })
    }
  }
  for (let number = 1; number <= count; number++) time.after(int(500, stormMillis - 15_000), () => plan(number))

  // The storm.
  const weather = random.next()
  const scaled = (most: number) => most * random.next() * (weather < 0.2 ? 0.2 : 1)
  world.faults = {
    rpcAway: scaled(0.15),
    sendTryAgain: scaled(0.3),
    sendError: scaled(chance(0.2) ? 1.6 : 0.3),
    sendLost: scaled(0.3),
    storeBefore: scaled(0.05),
    storeAfter: scaled(0.05),
    crash: scaled(0.004),
    crashAtStep: scaled(0.04),
    slow: scaled(0.05),
    stall: scaled(0.02)
  }
  ledger.faults = { drop: scaled(0.3), passOver: scaled(0.5), fail: scaled(0.15) }
  start(0)
  start(1)
  time.after(1_000, closeLedgers)
  for (let jump = int(0, 2); jump > 0; jump--) {
    time.after(int(1_000, stormMillis), () => {
      const entry = pick(running)
      if (entry === undefined) return
      coverage.count("clock jump")
      entry.replica.skewMillis += int(-60_000, 60_000)
    })
  }
  // Fair weather has its accidents too.
  for (let deaths = weather < 0.2 ? faultsMin : 0; deaths > 0; deaths--) {
    time.after(int(5_000, stormMillis - 5_000), () => {
      const entry = pick(running)
      if (entry !== undefined) world.kill(entry.replica, "crash at a port")
      else world.fault("crash at a port")
    })
  }
  time.at(end, () => {
    isCalm = true
    world.faults = quiet
    ledger.faults = { drop: 0, passOver: 0, fail: 0 }
    for (const node of world.nodes) node.lag = Math.min(node.lag, 1)
  })

  const isOver = () => isCalm && unfinished === 0 && [...store.rows.values()].every(({ state }) => !isOpen(state))
  const isFinished = time.run(isOver, end + calmMillis)
  // What was begun before may still give a lease back.
  time.run(() => false, time.now + 6_000)

  for (const { state } of store.rows.values())
    if (!isOpen(state) && state !== "unresolved") coverage.count(`state ${state}` as Wanted)
  for (const { innerHash, kind, outerHash } of ledger.log) {
    if (kind === "cancel") coverage.count("cancel landed")
    const row = [...store.rows.values()].find(({ born }) => born.innerHash === innerHash)
    if (row !== undefined && row.attempts.findIndex((attempt) => attempt.outerHash === outerHash) > 0)
      coverage.count("outbid landed")
  }
  const broken = [...violations(world, told)]
  if (!isFinished) broken.push(`not over ${calmMillis / 1_000} s after everything healed: ${unfinished} clients wait`)
  if (payments.length < paymentsMin) broken.push(`only ${payments.length} payments`)
  if (world.faultsSeen < faultsMin) broken.push(`only ${world.faultsSeen} faults`)
  return { seed, violations: broken, payments: payments.length, faults: world.faultsSeen, coverage: coverage.counts }
}
