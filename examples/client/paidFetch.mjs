// @ts-check
// A function in the form of `fetch` that pays, for code and libraries that take a fetch function: ky as `fetch`, axios
// as `env: { fetch }` with `adapter: "fetch"`. The receipt is in the PAYMENT-RESPONSE header of the answer.
//
//   const paid = makeFetch({ secret, facilitator, maxAmount: 1_000_000n })
//   const response = await paid("https://shop.example/weather")
import { pay } from "./prepared.mjs"

/**
 * Each call is one `pay` with its method, headers and body. A signal is ignored, because a payment that was sent cannot
 * be taken back.
 * @param {import("./prepared.mjs").Purchase} options
 * @returns {(input: string | URL | globalThis.Request, init?: RequestInit) => Promise<Response>}
 */
export const makeFetch = (options) => async (input, init) => {
  const request = new Request(input, init)
  const body = request.body === null ? {} : { body: new Uint8Array(await request.arrayBuffer()) }
  const headers = Object.fromEntries(request.headers)
  const { response } = await pay(request.url, { ...options, method: request.method, headers, ...body })
  return response
}
