// One run: the seed decides which agents buy from which sellers through two processes of the tool server, when the
// processes die, and the failures of the ledger and the store. The purchase is the product's own code, except the
// policy. Then all faults end, each agent repeats its call until it is answered, and the invariants are checked.
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import { Network, passphrases } from "../../../kernel/config/Network.ts"
import { WireVocabulary } from "../../../kernel/config/WireVocabulary.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { toolError, type ToolError, ToolsConfig } from "../../../plugins/mcp-tools/contract.ts"
import { BudgetStore } from "../../../plugins/mcp-tools-pay/budget/BudgetStore.ts"
import { makeHoldTurn } from "../../../plugins/mcp-tools-pay/budget/reconcileHolds.ts"
import type { Output } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import { PaymentPolicyCheck } from "../../../plugins/mcp-tools-pay/call/PaymentPolicyCheck.ts"
import { makePurchase } from "../../../plugins/mcp-tools-pay/call/makePurchase.ts"
import { OpenPayments } from "../../../plugins/mcp-tools-pay/call/OpenPayments.ts"
import { Payments } from "../../../plugins/mcp-tools-pay/call/Payments.ts"
import { AgentChannels } from "../../../plugins/mcp-tools-pay/channel/AgentChannels.ts"
import { Config } from "../../../plugins/mcp-tools-pay/Config.ts"
import { Payer } from "../../../plugins/mcp-tools-pay/payer/Payer.ts"
import { PaymentBuilder } from "../../../plugins/mcp-tools-pay/payer/PaymentBuilder.ts"
import { makeSeal, PaymentSeal } from "../../../plugins/mcp-tools-pay/payer/PaymentSeal.ts"
import { seedPayer } from "../../../plugins/mcp-tools-pay/payer/seedPayer.ts"
import { Policy } from "../../../plugins/mcp-tools-pay/policy/Policy.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { AgentSeller, sellerKinds } from "./AgentSeller.ts"
import { AgentWorld, type Process } from "./AgentWorld.ts"
import { amount, Buyer } from "./Buyer.ts"
import { violationsOf } from "./invariants.ts"
import { layerTest } from "../../support/layerTest.ts"

export interface AgentReport {
  readonly seed: number
  readonly violations: ReadonlyArray<string>
  readonly counts: ReadonlyMap<string, number>
}

const stormMillis = 600_000
/** Virtual time after which each call must have its answer, and each hold must have ended. */
const calmMillis = 2_400_000
/** Longer than any stall of a process that began before the faults ended. */
const askAgainMillis = 600_000
const agentsMin = 3
const agentsMax = 6
/** Number of payments that the day's budget covers. */
const payments = { least: 4, most: 12 }

const nodeCrypto = Effect.runSync(Effect.provide(Crypto, NodeCrypto.layer))
const key = (name: string) => Keypair.fromRawEd25519Seed(nodeCrypto.sha256(new TextEncoder().encode(name)) as never)
const payerKey = key("payer")
const sellerKeys = Array.from({ length: agentsMax }, (_, index) => key(`seller ${index}`).publicKey())

type Purchases = Payments | Policy
interface Running {
  readonly process: Process
  services: Context.Context<Purchases> | undefined
}

const identifierOf = ({ receipt }: Output): unknown =>
  (receipt as { readonly paymentIdentifier?: unknown } | undefined)?.paymentIdentifier

const portsOf = (world: AgentWorld, process: Process, perDay: bigint) => {
  const crypto = { ...nodeCrypto, randomBytes: (length: number) => world.random.bytes(length) }
  return Layer.mergeAll(
    Layer.succeed(Crypto, crypto),
    Layer.succeed(
      LedgerRpc,
      world.ledger.rpcOf((operation, read, away) => world.call(process, operation, read, away))
    ),
    Layer.succeed(BudgetStore, world.storeOf(process)),
    layerTest(Network, { id: "ledger:testnet", passphrase: passphrases["ledger:testnet"] }),
    Layer.succeed(WireVocabulary, { dialects: ["ledger"], stellarPendingReason: "settlement_pending" }),
    layerTest(ToolsConfig, { confirmMillis: 10_000 }),
    layerTest(Config, {
      replayMillis: world.replayMillis,
      ceilings: {
        perSession: perDay,
        perDay,
        perRecipient: 0n,
        perOrigin: 0n,
        perGrade: { proven: 0n, provisional: 0n },
        paymentsPerMinute: 0
      }
    }),
    Layer.succeed(PaymentSeal, makeSeal(crypto, Redacted.make(new Uint8Array(32)))),
    Layer.succeed(Payer, seedPayer(crypto, Redacted.make(Uint8Array.from(payerKey.rawSecretKey())))),
    Layer.succeed(Policy, { verify: () => Effect.succeed(Effect.void), explain: () => Effect.die("not asked") })
  )
}

/** The product's own layers over the ports of one process. */
const layerOf = (world: AgentWorld, process: Process, perDay: bigint) =>
  Payments.layer.pipe(
    Layer.provide(
      Layer.mergeAll(PaymentBuilder.layer, PaymentPolicyCheck.layer, OpenPayments.layer, AgentChannels.layer)
    ),
    Layer.provideMerge(portsOf(world, process, perDay))
  )

class Run {
  readonly world: AgentWorld
  readonly buyers: ReadonlyArray<Buyer>
  readonly perDay: bigint
  readonly #running: Array<Running> = []
  isCalm = false

  constructor(seed: number) {
    const world = new AgentWorld(seed)
    this.world = world
    const { int, pick } = world.random
    this.perDay = BigInt(int(payments.least, payments.most)) * amount
    this.buyers = Array.from({ length: int(agentsMin, agentsMax) }, (_, index) => {
      const terms = { payTo: sellerKeys[index]!, asset: testnetUsdc, payer: payerKey.publicKey(), amount }
      const kind = pick(sellerKinds)
      world.count(`seller ${kind}`)
      return new Buyer(`call-${index}`, new AgentSeller(world, kind, terms), pick([30, 60, 300]))
    })
    world.onCrash = (process) => {
      const slot = this.#running.findIndex((one) => one.process === process)
      world.time.after(int(200, 20_000), () => this.#start(slot))
    }
    for (const slot of [0, 1]) this.#start(slot)
    world.ledger.start()
  }

  #fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.world.context)(effect, { scheduler: this.world.time.scheduler })
  }

  #start(slot: number): void {
    const entry: Running = { process: { name: `process-${slot}`, isAlive: true }, services: undefined }
    this.#running[slot] = entry
    const layer = layerOf(this.world, entry.process, this.perDay)
    const life = Effect.gen(function* () {
      const services = yield* Layer.build(layer)
      entry.services = services as unknown as Context.Context<Purchases>
      const { every, turn } = yield* Effect.provideContext(makeHoldTurn, services)
      while (true) {
        yield* Effect.ignore(turn)
        yield* Effect.sleep(yield* every)
      }
    })
    this.#fork(Effect.scoped(life) as Effect.Effect<never>)
  }

  /** Makes the call at a process; `after` runs when it ends, and when its process dies. */
  call(buyer: Buyer, after: () => void): void {
    const { world } = this
    const { random, time } = world
    const entry = random.pick(this.#running)
    if (entry.services === undefined || !entry.process.isAlive) return after()
    const { process } = entry
    buyer.isAsking += 1
    let isOver = false
    const end = () => {
      if (isOver) return
      isOver = true
      buyer.isAsking -= 1
      after()
    }
    const away = () => toolError("UPSTREAM_TIMEOUT", "the seller cannot be reached")
    const { invocation, seller } = buyer
    const challenge = {
      version: 2,
      resourceUrl: invocation.ref,
      resource: {},
      options: [],
      extensions: { "payment-identifier": {} },
      reason: undefined
    } as const
    const reached = world.call(
      process,
      "reach seller",
      Effect.sync(() => seller.by(process)),
      away
    )
    const shop = {
      ask: Effect.map(reached, (by) => ({ challenge, option: invocation.option, seller: by })),
      connect: reached
    }
    const caller = { principal: "key:agent", session: "session" }
    const purchase = Effect.provideContext(makePurchase(invocation, caller, shop), entry.services)
    // The outcome is written to the connection immediately, unless the process dies there.
    const answered = Effect.tap(Effect.result(purchase as Effect.Effect<Output, ToolError>), () =>
      world.mayCrash(process, "at answer")
    )
    const fiber = this.#fork(answered)
    // The agent of a dead process gets no answer; it gives up after a while.
    const watch = () => {
      if (isOver) return
      if (process.isAlive) time.after(5_000, watch)
      else end()
    }
    watch()
    if (!this.isCalm && random.chance(0.05)) {
      time.after(random.int(10, 20_000), () => {
        if (isOver || !process.isAlive) return
        world.count("agent hung up")
        fiber.interruptUnsafe()
      })
    }
    fiber.addObserver((exit) => {
      if (!process.isAlive || isOver) return
      // A host that dies, or does not read, has no answer, and asks again.
      if (!this.isCalm && random.chance(0.15)) world.count("host lost")
      else if (exit._tag === "Success") this.#answered(buyer, exit.value as never, entry)
      end()
    })
  }

  #answered(
    buyer: Buyer,
    result: { readonly _tag: "Success"; success: Output } | { readonly _tag: "Failure"; failure: ToolError },
    { process, services }: Running
  ): void {
    const { random, time } = this.world
    if (result._tag === "Success") {
      buyer.answers.push({ output: result.success, atMillis: time.now })
      this.world.count("answered")
      const id = identifierOf(result.success)
      // The session makes another request, or never does.
      if (services !== undefined && typeof id === "string" && random.chance(0.7))
        time.after(random.int(1, 60_000), () => {
          if (!process.isAlive) return
          this.world.count("acknowledged")
          const payments = Context.get(services as Context.Context<Payments>, Payments)
          this.#fork(payments.acknowledge(id))
        })
    } else {
      buyer.errors.push({ error: result.failure, atMillis: time.now })
      this.world.count(`error ${result.failure.code}`)
    }
  }

  /** Calls, once or as concurrent twins, until there is an answer; then perhaps buys a second time. */
  buy(buyer: Buyer): void {
    const { random, time } = this.world
    const answersBefore = buyer.answers.length
    const round = () => {
      if (buyer.answers.length > answersBefore) return
      const twins = this.isCalm ? 1 : random.pick([1, 1, 1, 2, 3])
      let left = twins
      for (let twin = 0; twin < twins; twin++)
        time.after(twin === 0 ? 0 : random.int(0, 2_000), () =>
          this.call(buyer, () => {
            if (--left > 0) return
            const pause = this.isCalm ? 60_000 : random.pick([500, 5_000, 60_000, 200_000])
            time.after(random.int(pause / 2, pause), round)
          })
        )
    }
    round()
  }
}

export const simulateAgents = (seed: number): AgentReport => {
  const run = new Run(seed)
  const { buyers, world } = run
  const { random, time } = world
  const end = time.now + stormMillis
  for (const buyer of buyers) {
    time.after(random.int(0, 60_000), () => run.buy(buyer))
    if (random.chance(0.3))
      time.after(random.int(100_000, 500_000), () => {
        // The agent buys it a second time, after the first is complete.
        if (buyer.answers.length > 0 && buyer.isAsking === 0) run.buy(buyer)
      })
  }
  time.run(() => false, end)
  world.heal()
  run.isCalm = true
  for (const { seller } of buyers) seller.isCalm = true
  // Repeats a call that was refused because its twin got the answer, even if a stall delayed it.
  const askAgain = () => {
    for (const buyer of buyers)
      if (buyer.isAsking === 0 && (buyer.errors.at(-1)?.atMillis ?? 0) > (buyer.answers.at(-1)?.atMillis ?? Infinity))
        run.buy(buyer)
  }
  for (let wait = 0; wait <= askAgainMillis; wait += 120_000) time.after(wait, askAgain)
  time.run(() => false, end + calmMillis)
  return { seed, violations: violationsOf(run), counts: world.counts }
}
