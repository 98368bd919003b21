// `settlements explain` over a facilitator that really settled: by the hash that its caller received, by the payer, and
// of an unknown payment.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Exit } from "effect"
import { Command } from "effect/cli"
import { Within } from "../../../runtime/commands/CommandTarget.ts"
import { settlements } from "../../../runtime/commands/settlements.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const run = Effect.fnUntraced(function* (world: Facilitator, ...words: ReadonlyArray<string>) {
  const out: Array<string> = []
  const outer = yield* Console.Console
  const tree = Command.make("tollkeeper").pipe(Command.withSubcommands([settlements]))
  const exit = yield* Command.runWith(tree, { version: "0" })(["settlements", ...words]).pipe(
    Effect.provideService(Within, { services: world.services, folder: "." }),
    Effect.provideService(Console.Console, { ...outer, log: (...parts) => void out.push(parts.map(String).join(" ")) }),
    Effect.provide(NodeServices.layer),
    Effect.exit
  )
  return { exit, text: out.join("\n") }
})

it.live(
  "explains a payment by its hash and its payer, and refers to the log for a refused one",
  () =>
    Effect.gen(function* () {
      const world = yield* startFacilitator({ set: ["plugins=[ledger-local,x402-exact]"] })
      const payer = yield* world.account()
      const payTo = (yield* world.account(0n)).publicKey()
      const { body } = yield* world.payment({ payer, payTo, amount: 10_000n })
      const settled = (yield* world.settle(body)).json
      expect(settled).toMatchObject({ success: true })

      // The confirmation is written after the answer has left.
      const plain = yield* eventually(run(world, "explain", settled.transaction), ({ text }) =>
        text.includes("the success was delivered at")
      )
      const steps = plain.text
        .split("\n")
        .slice(1)
        .map((line) => line.trim().split(/\s+/)[0])
      // A bid may have been raised before the ledger closed.
      expect([...new Set(steps)]).toEqual([
        "payment",
        "verify",
        "lease",
        "record",
        "attempt",
        "outcome",
        "answer",
        "open"
      ])
      expect(plain.text).toContain(
        `10000 of ${body.paymentRequirements.asset} (0.0010000 USDC) from ${payer.publicKey()}`
      )
      // An envelope sent twice before its ledger closes is reported with its last answer.
      expect(plain.text).toMatch(/attempt .*(taken by the node|already known to the node)/)
      expect(plain.text).toMatch(/outcome +settled in ledger \d+, closed .*stroops charged/)
      expect(plain.text).toMatch(/answer +the success was delivered at/)

      const byPayer = yield* run(world, "explain", payer.publicKey(), "--json")
      const { hasMore, stories } = JSON.parse(byPayer.text)
      expect([hasMore, stories.length]).toEqual([false, 1])
      expect(stories[0]).toMatchObject({ state: "settled", transaction: settled.transaction, payer: payer.publicKey() })
      expect(byPayer.text).not.toContain(body.paymentPayload.payload.transaction.slice(0, 60))

      const unknown = yield* run(world, "explain", "0".repeat(64))
      expect(Exit.isFailure(unknown.exit)).toBe(true)
      expect(JSON.stringify(unknown.exit)).toContain("the log has one line a request")
    }).pipe(Effect.scoped),
  240_000
)
