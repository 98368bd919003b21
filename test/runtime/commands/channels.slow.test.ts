// `tollkeeper channels` with two running replicas on one PostgreSQL: both follow its changes, payments continue, and
// the ledger's accounts are created and merged accordingly.
import { expect, it } from "@effect/vitest"
import { Keypair, xdr } from "@stellar/stellar-sdk"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import { execFile } from "node:child_process"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const cli = fileURLToPath(new URL("../../../runtime/cli.ts", import.meta.url))

const accountKey = (address: string) =>
  xdr.LedgerKey.account(
    new xdr.LedgerKeyAccount({
      accountId: xdr.PublicKey.publicKeyTypeEd25519(Keypair.fromPublicKey(address).rawPublicKey())
    })
  ).toXdr("base64")

describe.skipIf(!databaseKinds.includes("postgres"))("tollkeeper channels", () => {
  it.live(
    "grows and shrinks the channels of running replicas, without a restart and under payments [S340]",
    () =>
      Effect.gen(function* () {
        const opened = yield* Context.get(yield* Layer.build(sourceLayer("postgres")), DatabaseSource).open
        if (opened.kind !== "server") return yield* Effect.die(new Error("no server"))
        const shared = {
          database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
          environment: { SPONSOR_SECRET: Keypair.random().secret() },
          channels: 3
        }
        const first = yield* startFacilitator(shared)
        const second = yield* startFacilitator({ ...shared, ledgerUrl: first.ledgerUrl })
        const channels = (...args: ReadonlyArray<string>) =>
          Effect.promise(() =>
            promisify(execFile)(process.execPath, [cli, "channels", ...args], {
              env: { ...process.env, DATABASE_URL: Redacted.value(opened.url), NO_COLOR: "1" }
            }).then(
              ({ stdout }) => ({ code: 0, text: stdout }),
              (error) => ({ code: error.code as number, text: `${error.stdout}${error.stderr}` })
            )
          )
        const signersOf = (facilitator: typeof first) =>
          Effect.map(facilitator.ask("/supported"), ({ json }) => json.signers["stellar:*"].length as number)
        const states = Effect.map(
          first.sql<{
            state: string
            count: number
          }>`select state, count(*)::int as count from kernel_channels group by state order by state`,
          (rows) => rows.map(({ count, state }) => `${count} ${state}`).join(", ")
        )

        const pay = Effect.gen(function* () {
          const { body } = yield* first.payment({
            payer: yield* first.account(),
            payTo: (yield* first.account()).publicKey(),
            amount: 1n
          })
          const answer = yield* second.settle(body)
          expect([answer.status, answer.json.success, answer.text]).toEqual([200, true, answer.text])
        })
        const paying = yield* Effect.forkChild(
          Effect.forEach(Array.from({ length: 12 }), () => pay, { concurrency: 2, discard: true })
        )

        expect(yield* channels("resize", "8", "--reason", "more")).toEqual({
          code: 0,
          text: expect.stringContaining("8 channels are required")
        })
        yield* eventually(states, (text) => text === "8 ready")
        yield* eventually(Effect.all([signersOf(first), signersOf(second)]), ([a, b]) => a === 9 && b === 9)
        expect((yield* channels("resize", "2", "--reason", "less")).code).toBe(0)
        yield* eventually(states, (text) => text === "2 ready, 6 retired")
        yield* Fiber.join(paying)
        const listed = yield* channels("list")
        expect(listed.text).toContain("2 of 8 ready; required: 2")
        const accounts = listed.text.match(/G[A-Z2-7]{55}/g)!
        const exists = yield* Effect.forEach(accounts, (address) =>
          Effect.promise(() =>
            first.rpc("getLedgerEntries", { keys: [accountKey(address)] }).then(({ entries }) => entries.length)
          )
        )
        expect(exists).toEqual([1, 1, 0, 0, 0, 0, 0, 0])
        expect((yield* channels("resize", "0", "--reason", "none")).code).not.toBe(0)
        expect((yield* channels("resize", "201", "--reason", "many")).text).toContain("from 1 to 200 channels")
        yield* pay
      }).pipe(Effect.scoped),
    240_000
  )
})
