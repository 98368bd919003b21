// Keys rotated by an operator over HTTP: a dry run shows the plan first, only that plan is executed, and both are
// audited.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Exit, FileSystem } from "effect"
import { Command } from "effect/cli"
import { describe } from "vitest"
import { channels } from "../../../runtime/commands/channels.ts"
import { keys } from "../../../runtime/commands/keys.ts"
import { Within } from "../../../runtime/commands/CommandTarget.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { describedErrors } from "../analytics/support.ts"

const ops = "operator-secret-012345"
const authorization = `Bearer ${ops}`

const operators = Command.make("tollkeeper").pipe(Command.withSubcommands([keys, channels]))

describe("key rotation over HTTP", () => {
  it.live(
    "a key rotation is planned, executed as planned, and audited",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const folder = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-rotation-" })
        const [old, next, stranger] = [Keypair.random(), Keypair.random(), Keypair.random()]
        const write = (...pairs: ReadonlyArray<Keypair>) =>
          files.writeFileString(`${folder}/sponsor`, pairs.map((pair) => pair.secret()).join())
        yield* write(old)
        const facilitator = yield* startFacilitator({
          channels: 2,
          environment: { SPONSOR_SECRET_FILE: `${folder}/sponsor`, OPERATOR_API_KEYS: `ops:${ops}` },
          set: ["plugins=[ledger-local,x402-exact,catalog,dashboard]"]
        })
        const errors = describedErrors((yield* facilitator.ask("/openapi.json")).json)
        const read = Effect.gen(function* () {
          const answer = yield* facilitator.ask("/dashboard/v1/rotations", { headers: { authorization } })
          expect([answer.status, errors("/dashboard/v1/rotations", answer)]).toEqual([200, []])
          return answer.json.items[0]
        })
        const rotate = (plan: string, headers: Record<string, string> = { authorization }) =>
          facilitator.ask("/dashboard/v1/moves", {
            method: "POST",
            headers: { "content-type": "application/json", ...headers },
            body: JSON.stringify({ move: "rotate", what: "sponsor", plan, note: "a year has passed" })
          })
        const sponsor = Effect.map(facilitator.ask("/supported"), ({ json }) => json.kinds[0].signer as string)
        expect((yield* facilitator.ask("/dashboard/v1/rotations")).status).toBe(401)
        const first = yield* read
        expect(first).toMatchObject({
          what: "sponsor",
          now: { sponsor: old.publicKey() },
          refused: expect.stringContaining(`the sponsor is still ${old.publicKey()}`)
        })
        expect((yield* rotate(first.plan)).status).toBe(409)

        yield* write(next, old)
        const dryRun = yield* read
        expect(dryRun).toMatchObject({
          now: { sponsor: old.publicKey() },
          next: { sponsor: next.publicKey(), former_sponsors: [old.publicKey()] },
          refused: null
        })
        // The dry run changes nothing; only an operator may request it; keys other than planned are refused.
        expect(yield* sponsor).toBe(old.publicKey())
        expect((yield* rotate(dryRun.plan, {})).status).toBe(401)
        yield* write(stranger, old)
        const other = yield* rotate(dryRun.plan)
        expect([other.status, other.json.message]).toEqual([
          409,
          expect.stringContaining("no longer hold the planned keys")
        ])
        expect(yield* sponsor).toBe(old.publicKey())
        yield* write(next, old)
        expect((yield* rotate(dryRun.plan)).json).toEqual({ done: true })
        expect(yield* sponsor).toBe(next.publicKey())
        const moves = yield* facilitator.ask("/dashboard/v1/moves", { headers: { authorization } })
        const line = { by: "ops", move: "rotate", subject: "sponsor", note: "a year has passed" }
        expect(moves.json.items).toMatchObject([
          { ...line, outcome: "done" },
          { ...line, outcome: expect.stringContaining("no longer hold the planned keys") },
          { ...line, outcome: expect.stringContaining("is still") }
        ])
        expect(moves.text).not.toMatch(/\bS[A-Z2-7]{55}\b/)

        // By the command line too, with its own output.
        yield* write(Keypair.random(), next, old)
        const command = (...words: ReadonlyArray<string>) =>
          Command.runWith(operators, { version: "1" })(words).pipe(
            Effect.provideService(Within, { services: facilitator.services, folder, person: "ada" }),
            Effect.exit
          )
        expect(Exit.isSuccess(yield* command("keys", "rotate", "sponsor", "--note", "another year"))).toBe(true)
        expect(Exit.isSuccess(yield* command("keys", "rotate", "sponsor", "--reason", "again"))).toBe(false)
        expect(Exit.isSuccess(yield* command("channels", "resize", "3", "--reason", "fewer"))).toBe(true)
        const list = yield* facilitator.ask("/dashboard/v1/moves", { headers: { authorization } })
        const by = { by: "ada", via: "command line", move: "rotate", subject: "sponsor" }
        expect(list.json.items.slice(0, 3)).toMatchObject([
          { by: "ada", move: "resize-channels", subject: "3", after: "3", note: "fewer", outcome: "done" },
          { ...by, note: "again", outcome: expect.stringContaining("is still") },
          { ...by, note: "another year", outcome: "done", before: expect.stringMatching(/^sponsor G/) }
        ])
        const page = yield* facilitator.ask(`/dashboard/v1/moves?before=${list.json.items[0].id}`, {
          headers: { authorization }
        })
        expect(page.json.items).toEqual(list.json.items.slice(1))
        expect(errors("/dashboard/v1/moves", list)).toEqual([])
        const taken = yield* sponsor

        // An unreadable key is reported and changes nothing.
        yield* files.writeFileString(`${folder}/sponsor`, "SNOSEED")
        const unread = yield* facilitator.ask("/dashboard/v1/rotations", { headers: { authorization } })
        expect([unread.status, unread.json.error, unread.text.includes("SNOSEED")]).toEqual([
          409,
          "rotation_unknown",
          false
        ])
        expect(yield* sponsor).toBe(taken)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
