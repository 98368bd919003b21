// A proxy in front of the ledger's RPC that injects faults of networks and nodes: it swallows requests, answers 503,
// loses answers after the work was done, reports a lagging ledger, and reports an error for an accepted submission.
import { Networks, TransactionBuilder } from "@stellar/stellar-sdk"
import { type ProxiedCall, type RpcProxy, startRpcProxy } from "../support/rig/rpcProxy.ts"
import { rpcCall } from "../../runtime/redteam/rpcCall.ts"

export interface BadProxy extends RpcProxy {
  /** Seen so far, by kind. */
  readonly counts: Map<string, number>
  /** No request gets an answer until this many milliseconds from now. */
  readonly blackhole: (millis: number) => void
}

export interface ProxyFaults {
  readonly away: number
  readonly lostAnswer: number
  readonly errorThoughTaken: number
  readonly tryAgain: number
  readonly behind: number
}

/** A node that lags by this many ledgers does not have their transactions. */
const behindLedgers = 6

/** The answer of a lagging node; undefined if the answer contains no ledger. */
const behind = (method: string, reported: any): unknown => {
  const { result } = reported
  if (method === "getTransaction" && result !== undefined) {
    const unknown = { status: "NOT_FOUND", envelopeXdr: undefined, resultXdr: undefined, resultMetaXdr: undefined }
    return { ...reported, result: { ...result, ...unknown, latestLedger: result.latestLedger - behindLedgers } }
  }
  return result?.sequence === undefined
    ? undefined
    : { ...reported, result: { ...result, sequence: result.sequence - behindLedgers } }
}

const tryAgainLater = async (target: string, { id, params }: ProxiedCall): Promise<string> => {
  const { sequence } = await rpcCall(target)("getLatestLedger")
  const hash = Buffer.from(TransactionBuilder.fromXdr(params.transaction, Networks.TESTNET).hash()).toString("hex")
  const result = { status: "TRY_AGAIN_LATER", hash, latestLedger: sequence, latestLedgerCloseTime: "0" }
  return JSON.stringify({ jsonrpc: "2.0", id, result })
}

/** `chance` decides each call separately. */
export const startBadProxy = async (
  target: string,
  faults: ProxyFaults,
  chance: (probability: number) => boolean
): Promise<BadProxy> => {
  const counts = new Map<string, number>()
  const count = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1)
  let silentUntil = 0
  const handle = async (call: ProxiedCall): Promise<void> => {
    const { answer, method } = call
    if (performance.now() < silentUntil) return count("blackholed")
    if (chance(faults.away)) {
      count("away")
      return answer(503, "")
    }
    if (method === "sendTransaction" && chance(faults.tryAgain)) {
      count("try again later")
      return answer(200, await tryAgainLater(target, call))
    }
    const { status, text } = await call.passOn()
    if (chance(faults.lostAnswer)) {
      count("answer lost")
      return call.cut()
    }
    if (method === "sendTransaction" && chance(faults.errorThoughTaken)) {
      const reported = JSON.parse(text)
      if (reported.result?.status === "PENDING") {
        count("taken, and called an error")
        return answer(200, JSON.stringify({ ...reported, result: { ...reported.result, status: "ERROR" } }))
      }
    }
    if ((method === "getTransaction" || method === "getLatestLedger") && chance(faults.behind)) {
      count("a node that is behind")
      const changed = behind(method, JSON.parse(text))
      if (changed !== undefined) return answer(200, JSON.stringify(changed))
    }
    answer(status, text)
  }
  const proxy = await startRpcProxy(target, handle)
  return {
    ...proxy,
    counts,
    blackhole: (millis) => {
      count("blackhole")
      silentUntil = performance.now() + millis
    }
  }
}
