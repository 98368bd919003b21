// The short reference buyer: it signs only the transfer of the terms, for any answer of a simulation, and only in a
// known asset.
import { expect, it } from "@effect/vitest"
import { Address, nativeToScVal, xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { createServer } from "node:http"
import { buy, signPayment } from "../../examples/buyer.ts"
import { startSeller } from "../../examples/seller-http.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { startFacilitator } from "../support/facilitator.ts"

/**
 * The entry with a second transfer below the authorized one, which a seller's own contract as the asset could ask for.
 */
const nested = (entryXdr: string, from: string, thief: string): string => {
  const entry: any = xdr.SorobanAuthorizationEntry.schema.decode(Buffer.from(entryXdr, "base64"))
  const call = new xdr.InvokeContractArgs({
    contractAddress: new Address(testnetUsdc).toScAddress(),
    functionName: "transfer",
    args: [new Address(from).toScVal(), new Address(thief).toScVal(), nativeToScVal(5_000_000n, { type: "i128" })]
  })
  const below = new xdr.SorobanAuthorizedInvocation({
    function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(call),
    subInvocations: []
  })
  entry.rootInvocation.subInvocations.push(xdr.SorobanAuthorizedInvocation.schema.decode(below.toXdr()))
  return Buffer.from(xdr.SorobanAuthorizationEntry.schema.encode(entry)).toString("base64")
}

it.live(
  "the buyer signs the one transfer of the terms, whatever a simulation asks for, in no asset that it does not know",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 1_000 })
      const buyer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const thief = (yield* facilitator.account(0n)).publicKey()
      const lying = createServer((request, response) => {
        let text = ""
        request.on("data", (chunk) => (text += chunk))
        request.on("end", async () => {
          const answer = await fetch(facilitator.ledgerUrl, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: text
          })
          const json: any = await answer.json()
          for (const result of json.result?.results ?? [])
            result.auth = (result.auth ?? []).map((entry: string) => nested(entry, buyer.publicKey(), thief))
          response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(json))
        })
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => lying.listen(0, "127.0.0.1", resolve)))
      yield* Effect.addFinalizer(() => Effect.sync(() => lying.close()))
      const rpcUrl = `http://127.0.0.1:${(lying.address() as { port: number }).port}`
      const seller = yield* Effect.acquireRelease(
        Effect.promise(() => startSeller({ facilitator: facilitator.url, payTo, asset: testnetUsdc, amount: "12345" })),
        (started) => Effect.promise(() => started.close())
      )
      const options = { secret: buyer.secret(), rpcUrl, maxAmount: 1_000_000n }
      const { paymentPayload, receipt, response } = yield* Effect.promise(() => buy(`${seller.url}/weather`, options))
      expect([response.status, receipt?.success]).toEqual([200, true])
      const envelope: any = xdr.TransactionEnvelope.schema.decode(
        Buffer.from(paymentPayload.payload.transaction, "base64")
      )
      const { auth } = envelope.v1.tx.operations[0].body.invokeHostFunctionOp
      expect([auth.length, auth[0].rootInvocation.subInvocations.length]).toEqual([1, 0])
      expect([yield* facilitator.balance(payTo), yield* facilitator.balance(thief)]).toEqual([12_345n, 0n])

      // A limit is in units of an asset, so an asset of the seller's choice is refused.
      const other = "CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75"
      const refused = yield* Effect.promise(() =>
        buy(`${seller.url}/weather`, { ...options, assets: [other] }).catch((error) => error.message)
      )
      expect(refused).toContain("asks for nothing that this buyer would pay")
      const signed = yield* Effect.promise(() =>
        signPayment({ ...paymentPayload.accepted, asset: other }, options)
          .then(() => "signed")
          .catch((error) => error.message)
      )
      expect(signed).toContain("is not an asset that this buyer pays in")
    }).pipe(Effect.scoped),
  240_000
)
