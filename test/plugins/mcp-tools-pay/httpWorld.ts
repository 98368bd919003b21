// A test world for paying HTTP resources: a cataloged seller of three, and helpers.
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { Context, Effect, Layer } from "effect"
import { encodeReference } from "../../../plugins/mcp-tools/Reference.ts"
import { bodyDeclaration, declaring, queryDeclaration, verified } from "../catalog/support.ts"
import { call, type Json } from "../mcp-tools/support.ts"
import { httpAmount, type HttpSeller, startHttpSeller } from "./httpSeller.ts"
import { PayWorld } from "./payWorld.ts"

export const enabled = "http_payments.enabled=true"
/** The seller's false claim is checked only briefly. */
export const soon = "network_security.confirm_timeout_ms=300"

let fresh = 0
/** A unique query for every test, so that no two calls are identical. */
export const query = () => ({ city: `city-${++fresh}` })

export class HttpWorld extends Context.Service<HttpWorld, { readonly seller: HttpSeller; readonly ref: string }>()(
  "test/HttpWorld"
) {
  static readonly layer = Layer.effect(
    HttpWorld,
    Effect.gen(function* () {
      const { facilitator } = yield* PayWorld
      const payTo = (yield* facilitator.account()).publicKey()
      const seller = yield* startHttpSeller(facilitator, payTo)
      const lister = yield* facilitator.account()
      const listed = [
        ["/weather", queryDeclaration()],
        ["/cities/riga", queryDeclaration({ routeTemplate: "/cities/:name" })],
        ["/companies", bodyDeclaration("POST")]
      ] as const
      for (const [path, extension] of listed) {
        const url = `${seller.origin}${path}`
        const declared = { payer: lister, payTo, url, extension, amount: httpAmount }
        yield* verified(facilitator, yield* declaring(facilitator, declared))
      }
      return { seller, ref: refOf(seller, "/weather") }
    })
  ).pipe(Layer.provideMerge(PayWorld.layer))
}

export const refOf = ({ origin }: HttpSeller, path: string) =>
  encodeReference({ type: "http", url: `${origin}${path}`, toolName: "" })

export const fetched = (client: Client, ref: string, more: Json = {}) =>
  call(client, "x402_fetch_resource", { ref, query: query(), ...more })

export const paymentsIn = (seller: HttpSeller, from: number) =>
  seller.received.slice(from).flatMap(({ payment }) => (payment === undefined ? [] : [JSON.stringify(payment)]))
