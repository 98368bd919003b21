// The program, killed without warning at each named step of the money path, over a ledger that lives on. Started again,
// it finishes what was recorded and drops what was not: the payment ends once, and a retry receives the true outcome.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { steps } from "../../../kernel/settlement/CrashPoints.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { launchProgram } from "../../support/launchProgram.ts"

const price = 10_000n

/** Asks again while the answer is busy: channels may not be there yet, and nothing of a busy payment is kept. */
const postJson = async (url: string, body: unknown): Promise<{ readonly status: number; readonly json: any }> => {
  while (true) {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    const json: any = await response.json()
    if (response.status !== 503) return { status: response.status, json }
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

it.live.each(steps)(
  "killed at %s, the payment ends once and a retry gets its outcome [S87, S89, S93, S94]",
  (step) =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const state = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-crash-" })
      const world = yield* startFacilitator({ channels: 1, closeMillis: 1_000 })
      const port = yield* Effect.promise(freePort)
      const url = `http://127.0.0.1:${port}`
      const launch = (env: Record<string, string>) =>
        launchProgram({ world, stateFolder: state, port, channels: 2, env })
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
      const cutOff = yield* Effect.promise(() =>
        postJson(`${url}/settle`, body).then(
          () => false,
          () => true
        )
      )
      expect(cutOff).toBe(true)
      yield* launch({})
      const retry = yield* Effect.promise(() => postJson(`${url}/settle`, body))
      expect(retry.json).toMatchObject({ success: true })
      expect(yield* world.balance(seller.publicKey())).toBe(price)
      const again = yield* Effect.promise(() => postJson(`${url}/settle`, body))
      expect(again.json).toEqual(retry.json)
      // Both channels came back: two concurrent payments find one each.
      const others = yield* Effect.forEach([1, 2], () =>
        world.payment({ payer, payTo: seller.publicKey(), amount: price, maxTimeoutSeconds: 300 })
      )
      const answers = yield* Effect.promise(() =>
        Promise.all(others.map(({ body }) => postJson(`${url}/settle`, body)))
      )
      expect(answers.map(({ json }) => json.success)).toEqual([true, true])
      expect(yield* world.balance(seller.publicKey())).toBe(3n * price)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
