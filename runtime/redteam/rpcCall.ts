// A bare JSON-RPC call for tests: no retry, no cache, the ledger's unchanged answer. An answer with `error` becomes a
// `LedgerRpcError`, so that a test can distinguish a refusal of the method from a refusal inside the result.

/** One JSON-RPC method call; resolves with `result` as the ledger sent it. */
export type RpcCall = (method: string, params?: unknown) => Promise<any>

/** The ledger answered with a JSON-RPC error, or with something other than JSON-RPC. */
export class LedgerRpcError extends Error {
  readonly code: number
  constructor(method: string, code: number, message: string) {
    super(`${method}: ${message} (${code})`)
    this.code = code
  }
}

/** A caller for the ledger at `url`. Each call waits at most `timeoutMs`, default 60 000. */
export const rpcCall = (url: string, timeoutMs = 60_000): RpcCall => {
  let id = 0
  return async (method, params) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: ++id, method, ...(params === undefined ? {} : { params }) }),
      signal: AbortSignal.timeout(timeoutMs)
    })
    const answer: any = await response.json()
    if (answer.error !== undefined) throw new LedgerRpcError(method, answer.error.code, answer.error.message)
    return answer.result
  }
}

/**
 * Asks the local ledger's friendbot for 10 000 XLM, and with `usdc` for a trustline and that many USDC. `origin` is the
 * address of the ledger's listener, without a path. Throws when the friendbot refuses.
 */
export const askFriendbot = async (origin: string, address: string, usdc?: number): Promise<void> => {
  const url = new URL("/friendbot", origin)
  url.searchParams.set("addr", address)
  if (usdc !== undefined) url.searchParams.set("usdc", String(usdc))
  const response = await fetch(url, { signal: AbortSignal.timeout(60_000) })
  if (!response.ok) throw new Error(`friendbot refused ${address}: ${response.status} ${await response.text()}`)
}

/** Polls the ledger for a transaction until it is there or `waitMs` have passed. */
export const awaitTransaction = async (call: RpcCall, hash: string, waitMs = 60_000): Promise<any> => {
  const until = performance.now() + waitMs
  for (;;) {
    const found = await call("getTransaction", { hash })
    if (found.status !== "NOT_FOUND" || performance.now() > until) return found
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
