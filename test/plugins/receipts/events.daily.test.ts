// A receipt in the event stream and in a webhook, which deliver it to its seller: the same bytes as in the answer.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { openEvents } from "../../support/eventStream.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { startReceiver } from "../webhooks/receiver.ts"
import { environment, key, paying, quick, receivers, secret } from "../webhooks/shop.ts"
import { receiptSecrets } from "./secrets.ts"

describe.each(databaseKinds)("receipts in events on %s", (database) => {
  it.live(
    "a settled payment's event brings its receipt, by stream and webhook",
    () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver({ secret })
        const facilitator = yield* startFacilitator({
          database,
          channels: 2,
          closeMillis: 500,
          environment: { ...environment, ...receiptSecrets },
          set: [
            "plugins=[ledger-local,x402-exact,webhooks,receipts]",
            "receipts.host=pay.example",
            ...quick,
            receivers({ key: "shop", url: receiver.url, secret_env: "SHOP_HOOK" })
          ]
        })
        const stream = yield* openEvents(`${facilitator.url}/settlements/events`, { authorization: `Bearer ${key}` })
        const { json } = yield* (yield* paying(facilitator))(facilitator)
        expect(json).toMatchObject({ success: true })
        const { extensions } = json
        expect(extensions["tollkeeper-receipt"].info.format).toBe("jws")
        const [recorded, settled] = yield* stream.until(({ length }) => length >= 2)
        expect([recorded!.event, recorded!.data.extensions]).toEqual(["settlement.recorded", undefined])
        expect([settled!.event, settled!.data.extensions]).toEqual(["settlement.settled", extensions])
        const messages = yield* receiver.until(({ length }) => length >= 2)
        expect(messages.map(({ type }) => type)).toEqual(["settlement.recorded", "settlement.settled"])
        expect(messages.map(({ data }) => data.extensions)).toEqual([undefined, extensions])
        expect(messages.map(({ isSigned }) => isSigned)).toEqual([true, true])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
