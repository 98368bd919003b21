// A Tollkeeper and the official class behind one client, each a separate process, and each killed at any moment of a
// settle and restarted: no payment is taken twice, none is lost, and no taken payment is refused.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { facilitators } from "../../examples/seller/facilitators.mjs"
import { ledgerProof } from "../../examples/seller/ledgerProof.mjs"
import { facilitatorAt } from "../../examples/seller/sellRequest.mjs"
import { memoryStore } from "../../examples/seller/soldOnce.mjs"
import { root } from "../../runtime/bootstrap.mjs"
import { installSet } from "../conformance/officialSet.ts"
import { type Program, startProgram } from "../conformance/programs.ts"
import { startFacilitator } from "../support/facilitator.ts"
import { freePort } from "../support/freePort.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"

const price = 1_000n
const payments = 10
const answerMillis = 120_000
const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** A process that is killed and restarted on the same port. */
const restartable = async (start: (port: number) => Program) => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  let program = start(port)
  const ready = async () => {
    const until = performance.now() + answerMillis
    while (
      !(await fetch(`${url}/supported`).then(
        async (answer) => answer.ok && ((await answer.json()) as any).kinds.length > 0,
        () => false
      ))
    ) {
      if (performance.now() > until) throw new Error(program.tail())
      await pause(100)
    }
  }
  await ready()
  return {
    url,
    kill: () => program.kill(),
    restart: async () => {
      program = start(port)
      await ready()
    },
    stop: () => program.stop()
  }
}

it.live(
  "under kills of either, every payment is taken once, or never and said so",
  () =>
    Effect.gen(function* () {
      yield* Effect.promise(() => installSet("a", () => {}))
      // Used only for its ledger.
      const world = yield* startFacilitator({ closeMillis: 1_000 })
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-two-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true, force: true })))
      const signers = Array.from({ length: 4 }, () => Keypair.random())
      for (const one of signers)
        yield* Effect.promise(() => askFriendbot(world.ledgerUrl, one.publicKey()) as Promise<unknown>)
      const official = join(root, "test", "official")
      const ours = (port: number) =>
        startProgram(
          process.execPath,
          [
            ...["runtime/cli.ts", "start", "--state", folder, "--port", String(port)],
            ...[
              "plugins=[x402-exact]",
              `networks.ledger:testnet.rpc_urls=["${world.ledgerUrl}"]`,
              `networks.ledger:testnet.friendbot_url=${world.ledgerUrl}/friendbot`,
              "networks.ledger:testnet.channel_count=3"
            ].flatMap((setting) => ["--set", setting])
          ],
          { cwd: root, env: { SPONSOR_SECRET: signers[0]!.secret(), DATABASE_URL: "" } }
        )
      const theirs = (port: number) =>
        startProgram(
          process.execPath,
          [
            ...["--import", join(official, "horizon.mjs"), join(official, "a", "peer.mjs")],
            JSON.stringify({
              rpc: world.ledgerUrl,
              secrets: signers.slice(1).map((one) => one.secret()),
              network: "stellar:testnet",
              port
            })
          ],
          { cwd: join(official, "a"), env: { LOCAL_HORIZON_PORT: "1" } }
        )
      const start = (program: (port: number) => Program) =>
        Effect.acquireRelease(
          Effect.promise(() => restartable(program)),
          ({ stop }) => Effect.promise(stop)
        )
      const [first, second] = [yield* start(ours), yield* start(theirs)]
      const [at, without] = [facilitatorAt(first.url), { ...facilitatorAt(second.url), keepsRecords: false }] as const
      const payTo = (yield* world.account(0n)).publicKey()
      const store = memoryStore()
      const proof = ledgerProof({ rpcUrl: world.ledgerUrl })
      let taken = 0n
      const ends: Array<string> = []
      for (let number = 0; number < payments; number++) {
        const isOursFirst = number % 2 === 0
        const order = isOursFirst ? [at, without] : [without, at]
        const killed = isOursFirst ? first : second
        const payer = yield* world.account(100_000n)
        const { body } = yield* world.payment({
          payer,
          payTo,
          amount: price,
          network: "stellar:testnet",
          maxTimeoutSeconds: 300,
          // The class counts five seconds a ledger.
          secondsPerLedger: 6
        })
        // Each time like another process of the seller: only the store is shared.
        const settle = () =>
          facilitators(order, { store, proof, attempts: 2, pauseMillis: 100 }).settle(
            body.paymentPayload,
            body.paymentRequirements
          )
        const answer = yield* Effect.promise(async () => {
          const settling = settle()
          await pause((number * 211) % 1_500)
          await killed.kill()
          let last = await settling
          await killed.restart()
          const until = performance.now() + answerMillis
          while (last.errorReason === "settlement_pending" && performance.now() < until) {
            await pause(500)
            last = await settle()
          }
          return last
        })
        ends.push(answer.success ? "settled" : String(answer.errorReason))
        const paid = 100_000n - (yield* world.balance(payer.publicKey()))
        expect([number, paid], ends.join()).toEqual([number, answer.success ? price : 0n])
        taken += paid
      }
      expect(ends.filter((end) => end === "settled").length, ends.join()).toBeGreaterThan(payments / 2)
      expect(yield* world.balance(payTo)).toBe(taken)
    }).pipe(Effect.scoped),
  600_000
)
