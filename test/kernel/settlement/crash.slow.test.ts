// The program, killed without warning at each named step of the money path, over a ledger that continues, on each
// database of the run. After a restart, it finishes recorded payments and drops the others: the payment ends once, and
// its caller receives its success once, or twice if the process died between the answer and its confirmation.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Context, Effect, FileSystem, Layer, Redacted } from "effect"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { type Step, steps } from "../../../kernel/settlement/CrashPoints.ts"
import { type DatabaseKind, databaseKinds, sourceLayer } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { launchProgram } from "../../support/launchProgram.ts"

const price = 10_000n

/** Asks again while the answer is busy: channels may not be there yet, and nothing of a busy payment is kept. */
const postJson = async (url: string, body: unknown, headers: Record<string, string> = {}): Promise<any> => {
  while (true) {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body)
    })
    const json: any = await response.json()
    // An answer that a dead process was sending is pending until the others can count the process as dead.
    if (response.status !== 503 && json.errorReason !== "settle_ledger_transaction_status_unknown") return json
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

/** Waits until the killed program no longer answers. */
const isGone = async (url: string): Promise<void> => {
  while (
    await fetch(`${url}/health/live`).then(
      () => true,
      () => false
    )
  )
    await new Promise((resolve) => setTimeout(resolve, 50))
}

/** Steps after which the answer has left. */
const answered: ReadonlyArray<Step> = ["afterAnswer", "afterConfirm"]
const used = "settle_ledger_already_settled"
const key = { "idempotency-key": "k".repeat(64) }

/** The variables with which a separate program uses the database; the embedded one is in its state folder. */
const databaseOf = Effect.fnUntraced(function* (kind: DatabaseKind) {
  if (kind === "pglite") return {}
  const opened = yield* Context.get(yield* Layer.build(sourceLayer(kind)), DatabaseSource).open
  return opened.kind === "server" ? { DATABASE_URL: Redacted.value(opened.url) } : {}
})

const crashes = databaseKinds.flatMap((kind) => steps.map((step) => [step, kind] as const))

it.live.each(crashes)(
  "killed at %s on %s, the payment ends once and its caller has its success [S87, S89, S93, S94]",
  ([step, kind]) =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const state = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-crash-" })
      const world = yield* startFacilitator({ channels: 1, closeMillis: 1_000 })
      const port = yield* Effect.promise(freePort)
      const url = `http://127.0.0.1:${port}`
      const database = yield* databaseOf(kind)
      const launch = (env: Record<string, string>) =>
        launchProgram({ world, stateFolder: state, port, channels: 2, env: { ...database, ...env } })
      const settle = (body: unknown, headers?: Record<string, string>) =>
        Effect.promise(() => postJson(`${url}/settle`, body, headers))
      const payer = yield* world.account()
      const seller = yield* world.account(0n)
      yield* launch({ TOLLKEEPER_TEST_CRASH_AT: step })
      // Made when the program is ready, and with time for a restart: an authorization expires by the ledger, also on a
      // busy machine.
      const { body } = yield* world.payment({
        payer,
        payTo: seller.publicKey(),
        amount: price,
        maxTimeoutSeconds: 300,
        extensions: { "payment-identifier": { info: { required: true, id: `killed-at-the-step-${step}` } } }
      })
      const first = yield* Effect.promise(() => postJson(`${url}/settle`, body, key).catch(() => undefined))
      expect(first?.success).toBe(answered.includes(step) ? true : undefined)
      if (first !== undefined) yield* Effect.promise(() => isGone(url))
      yield* launch({})
      const retry = yield* settle(body)
      if (step === "afterConfirm") expect(retry).toMatchObject({ errorReason: used, transaction: first.transaction })
      else expect(retry).toMatchObject({ success: true })
      expect(yield* world.balance(seller.publicKey())).toBe(price)
      for (let asked = 0; asked < 2; asked++)
        expect(yield* settle(body)).toMatchObject({ errorReason: used, transaction: retry.transaction })
      expect((yield* settle(body, key)).success).toBe(step === "afterConfirm")
      // Both channels came back: two concurrent payments find one each.
      const others = yield* Effect.forEach([1, 2], () =>
        world.payment({ payer, payTo: seller.publicKey(), amount: price, maxTimeoutSeconds: 300 })
      )
      const answers = yield* Effect.forEach(others, ({ body }) => settle(body), { concurrency: "unbounded" })
      expect(answers.map(({ success }) => success)).toEqual([true, true])
      expect(yield* world.balance(seller.publicKey())).toBe(3n * price)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
