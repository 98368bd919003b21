// A seller's MCP tool as the seller of one invocation: the call's metadata carries the payment, the result's metadata
// carries the settlement, and the content is the tool's result, member for member.
import { Effect } from "effect"
import type { PaidAnswer, Seller } from "../call/Invocation.ts"
import type { PaidResult, SellerSession } from "./SellerSession.ts"
import { exactContent, type Fields, readChallenge, readSettlement } from "./SellerWire.ts"

const readAnswer = ({ isPart, raw, result, why }: PaidResult): PaidAnswer => {
  const challenged = readChallenge(result)
  const settlement = readSettlement(result)
  return {
    settlement,
    isPart,
    why,
    asksAgain:
      challenged._tag === "None"
        ? undefined
        : { reason: challenged._tag === "Challenge" ? challenged.challenge.reason : undefined },
    isFailure: result["isError"] === true,
    // With a failed settlement, an error replaces the purchased content.
    isContent: !(result["isError"] === true && settlement?.success === false),
    content: {
      ...exactContent(result, raw),
      ...(result["isError"] === true ? { isError: true } : {}),
      ...(result["truncated"] === true ? { truncated: true } : {})
    }
  }
}

/** `timeoutMillis`: limit for the paid call, which includes verification and settlement. */
export const mcpSeller = (session: SellerSession, toolName: string, args: Fields, timeoutMillis: number): Seller => ({
  send: (payment) => Effect.map(session.payTool(toolName, args, { payment, timeoutMillis }), readAnswer),
  close: session.close
})
