// Faults as text, for settings and the command line. Each is `name=value`, some with a chance from 0 to 1 at the end:
//
//   drop=0.1                    a tenth of the transactions never gets into a ledger
//   delay=2[:0.5]               transactions wait two ledgers more (half of them)
//   try-again[=0.2]             sendTransaction answers TRY_AGAIN_LATER
//   send-error=txBadSeq[:0.2]   sendTransaction answers ERROR with this result
//   rpc=METHOD:503[:0.2]        a method (or `*`) answers this HTTP status
//   rpc-error=METHOD:-32603[:0.2]  a JSON-RPC error
//   lost=METHOD[:0.2]           the work is done, its answer is lost
//   silent=METHOD[:0.2]         no answer
//   late=METHOD:2000[:0.2]      the answer comes after this many milliseconds
//   stale=3[:0.5]               answers of a node that is three ledgers behind
//
// Chance is decided by the transaction's or the call's number, spread evenly, so a run can be repeated.
import { latin1 } from "../engine/xdr/Xdr.ts"
import type { TxErrorCode } from "../transaction/Wire.ts"
import { TxCode } from "../transaction/Wire.ts"
import type { Faults, RpcFault } from "./Faults.ts"

const GOLDEN = 0.6180339887498949

/** True in `chance` of the calls, spread evenly over them. */
const evenly = (chance: number): (() => boolean) => {
  let calls = 0
  return () => {
    const at = (calls++ * GOLDEN) % 1
    return at < chance
  }
}

/** True for `chance` of the transactions; the same transaction gets the same answer. */
const ofTransaction =
  (chance: number) =>
  (hash: string): boolean => {
    const fraction = ((hash.charCodeAt(0) << 16) | (hash.charCodeAt(1) << 8) | hash.charCodeAt(2)) / 0x1000000
    return fraction < chance
  }

const number = (text: string | undefined, otherwise: number, max: number): number | undefined => {
  if (text === undefined || text === "") return otherwise
  const value = Number(text)
  return Number.isFinite(value) && value >= 0 && value <= max ? value : undefined
}

const onMethod = (method: string, chance: number, fault: RpcFault): Partial<Faults> => {
  const hits = evenly(chance)
  return { onRpc: (called) => ((method === "*" || called === method) && hits() ? fault : undefined) }
}

const codeOf = (name: string): TxErrorCode | undefined => {
  const key = name.replace(/^tx/, "")
  const found = Object.entries(TxCode).find(([known]) => known.toLowerCase() === key.toLowerCase())?.[1]
  return found === undefined || found >= -1 || found === TxCode.feeBumpInnerFailed ? undefined : (found as TxErrorCode)
}

/** Parses a fault, or returns the problem of the text. */
export const parseFault = (text: string): Partial<Faults> | string => {
  const [name = "", value = ""] = text.split(/=(.*)/s)
  const parts = value.split(":")
  const [first = "", second] = parts
  const chanceOf = (at: number): number | undefined => number(parts[at], 1, 1)
  switch (name) {
    case "drop": {
      const chance = chanceOf(0)
      if (chance === undefined) return "the chance is a number from 0 to 1"
      const hits = ofTransaction(chance)
      return { drops: (frame) => hits(latin1(frame.innerHash)) }
    }
    case "delay": {
      const [ledgers, chance] = [number(first, 1, 1_000), chanceOf(1)]
      if (ledgers === undefined || chance === undefined) return "needs ledgers and a chance, such as delay=2:0.5"
      const hits = ofTransaction(chance)
      return { delayLedgers: (frame) => (hits(latin1(frame.innerHash)) ? ledgers : 0) }
    }
    case "try-again": {
      const chance = chanceOf(0)
      if (chance === undefined) return "the chance is a number from 0 to 1"
      const hits = evenly(chance)
      return { onSend: () => (hits() ? "TRY_AGAIN_LATER" : undefined) }
    }
    case "send-error": {
      const [code, chance] = [codeOf(first), chanceOf(1)]
      if (code === undefined || chance === undefined) return "needs a result code, such as send-error=txBadSeq:0.2"
      const hits = evenly(chance)
      return { onSend: () => (hits() ? code : undefined) }
    }
    case "rpc": {
      const [status, chance] = [number(second, 503, 599), chanceOf(2)]
      if (first === "" || status === undefined || status < 200 || chance === undefined)
        return "needs a method and a status, such as rpc=*:503:0.2"
      return onMethod(first, chance, { kind: "status", status })
    }
    case "rpc-error": {
      const code = Number(second ?? "-32603")
      const chance = chanceOf(2)
      if (first === "" || !Number.isInteger(code) || chance === undefined)
        return "needs a method and a code, such as rpc-error=*:-32603"
      return onMethod(first, chance, { kind: "error", code, message: "injected fault" })
    }
    case "lost":
    case "silent": {
      const chance = chanceOf(1)
      if (first === "" || chance === undefined) return `needs a method, such as ${name}=sendTransaction:0.2`
      return onMethod(first, chance, { kind: name })
    }
    case "late": {
      const [millis, chance] = [number(second, 1_000, 600_000), chanceOf(2)]
      if (first === "" || millis === undefined || chance === undefined)
        return "needs a method and milliseconds, such as late=*:2000"
      return onMethod(first, chance, { kind: "late", millis })
    }
    case "stale": {
      const [ledgers, chance] = [number(first, 1, 64), chanceOf(1)]
      if (ledgers === undefined || chance === undefined) return "needs up to 64 ledgers, such as stale=3:0.5"
      return onMethod("*", chance, { kind: "stale", ledgers })
    }
    default:
      return "no such fault; there are drop, delay, try-again, send-error, rpc, rpc-error, lost, silent, late, stale"
  }
}
