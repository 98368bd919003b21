// Applies the policy: decides on a payment before its seller is contacted, asks a person if a rule requires it, and
// logs every decision. The seller's terms must equal the decided terms in every member, or nothing is paid. A client
// that can ask its person does so. Until its answer, and for clients that cannot ask, the request waits for an
// operator; once it is approved, the identical call continues. A decision that cannot be logged is not paid.
import { Clock, Context, Effect, Layer } from "effect"
import { Network } from "../../../kernel/config/Network.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type Caller, toolError, type InputNeeded, type ToolError } from "../../mcp-tools/contract.ts"
import type { Invocation } from "../call/Invocation.ts"
import { Config } from "../Config.ts"
import { Approvals } from "./Approvals.ts"
import { askPerson } from "./askPerson.ts"
import { canonicalRules } from "./canonicalRules.ts"
import { type Decision, decide } from "./decide.ts"

/** The parts of an invocation that a decision uses. */
type DecisionInput = Pick<Invocation, "about" | "option">

const logUnavailable = toolError(
  "UPSTREAM_TIMEOUT",
  "the log of decisions cannot be written, so nothing is paid; retry later"
)

const questionOf = ({ about, option: { amount, asset, payTo } }: DecisionInput, { principal }: Caller) => ({
  agent: principal,
  ...about,
  asset,
  payTo,
  amount
})

const verify = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller, made: number) {
  const { policy } = yield* Config
  const approvals = yield* Approvals
  const question = questionOf(invocation, caller)
  const decision = decide(policy, question)
  const note = (outcome: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      approvals.log({
        at: new Date(now).toISOString(),
        agent: question.agent,
        session: caller.session,
        kind: question.kind,
        origin: question.origin ?? null,
        ref: invocation.ref,
        asset: question.asset,
        payTo: question.payTo,
        amount: question.amount.toString(),
        rule: decision.rule,
        outcome,
        invocation: invocation.key
      })
    )
  if (decision.outcome === "deny") {
    yield* note("denied")
    return yield* toolError("PAYMENT_REJECTED", "the operator's policy refuses this payment", { rule: decision.rule })
  }
  if (decision.outcome === "approve") {
    const given = yield* Effect.tapError(askPerson(invocation, caller, decision.rule, made), ({ _tag }) =>
      note(_tag === "InputNeeded" ? "asked" : "not approved")
    )
    yield* note(given === undefined ? "approved with another call" : "approved")
    if (given === undefined) return Effect.void
    // For the identical call, if this one led to no payment.
    return Effect.ignore(approvals.ask({ ...given, state: "approved" }, policy.approvalMillis))
  }
  yield* note("allowed")
  return Effect.void
})

export class Policy extends Context.Service<
  Policy,
  {
    /**
     * Succeeds if the payment is allowed; otherwise fails with the reason. The result is an effect that returns an
     * approval if it led to no payment. `made`: how often the invocation was paid for before; an approval is only for
     * the next payment.
     */
    readonly verify: (
      invocation: Invocation,
      caller: Caller,
      made: number
    ) => Effect.Effect<Effect.Effect<void>, ToolError | InputNeeded>
    /** The decision that `verify` would make. Asks and logs nothing. */
    readonly explain: (invocation: DecisionInput, caller: Caller) => Effect.Effect<Decision>
  }
>()("tollkeeper/mcp-tools-pay/Policy") {
  static readonly layer = Layer.effect(
    Policy,
    Effect.gen(function* () {
      const config = yield* Config
      const policy = { ...config.policy, rules: yield* canonicalRules(config.policy.rules) }
      const parts = Context.add(yield* Effect.context<Approvals | Config | Crypto | Network>(), Config, {
        ...config,
        policy
      })
      return Policy.of({
        verify: (invocation, caller, made) =>
          verify(invocation, caller, made).pipe(
            Effect.catchTag("BudgetUnavailable", () => Effect.fail(logUnavailable)),
            Effect.provideContext(parts)
          ),
        explain: (invocation, caller) => Effect.sync(() => decide(policy, questionOf(invocation, caller)))
      })
    })
  )
}
