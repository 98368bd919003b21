// The ledger's RPC as a provider runs it, in front of the real one: it can die, refuse submissions, and report close
// times that differ from this machine's clock. Everything else is unchanged.
import { type RpcProxy, startRpcProxy } from "../support/rig/rpcProxy.ts"

export interface RpcEndpoint extends RpcProxy {
  /** Dead: every connection is cut. */
  isDead: boolean
  /** Submissions are refused with 503, so recorded settlements stay open. */
  holds: boolean
  /** Added to the close times that it reports. */
  skewSeconds: number
}

/** The answer of `getLatestLedger` with a shifted clock. */
const shifted = (text: string, seconds: number): string => {
  const answer = JSON.parse(text)
  if (answer.result?.closeTime === undefined) return text
  answer.result.closeTime = String(Number(answer.result.closeTime) + seconds)
  return JSON.stringify(answer)
}

export const startEndpoint = async (target: string): Promise<RpcEndpoint> => {
  const state = { isDead: false, holds: false, skewSeconds: 0 }
  const proxy = await startRpcProxy(
    target,
    async ({ answer, method, passOn }) => {
      if (state.holds && method === "sendTransaction") return answer(503, "")
      const { status, text } = await passOn()
      const isShifted = method === "getLatestLedger" && state.skewSeconds !== 0
      answer(status, isShifted ? shifted(text, state.skewSeconds) : text)
    },
    () => !state.isDead
  )
  return Object.assign(state, proxy)
}
