// The policy at work: decides on a payment before its seller is contacted, asks a person where a rule says so, and notes
// every decision. What the seller asks for must be what was decided on, to the last member, or nothing is paid. A client that can ask its person does; until it has, and where it cannot, the request waits for an
// operator, and the identical call goes on once it is approved. What cannot be noted is not paid.
import { Clock, Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/canonicalJson.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type Caller, fault, type InputNeeded, retryableFault, type ToolFault } from "../../mcp-tools/contract.ts"
import type { Invocation } from "../call/Invocation.ts"
import { Config } from "../Config.ts"
import { Approvals } from "./Approvals.ts"
import type { Approval } from "./ApprovalWire.ts"
import { canonicalRules } from "./canonicalRules.ts"
import { type Decision, decide } from "./decide.ts"

const noted = fault("UPSTREAM_TIMEOUT", "the log of decisions cannot be written now, so nothing is paid")

/** An approval is for this call, on these terms, and no other. */
const approvalId = (crypto: Crypto["Service"], { key, option, versionHash }: Invocation): string => {
  const terms = [key, versionHash, option.network, option.asset, option.payTo, option.amount.toString()]
  return Hex.encode(crypto.sha256(new TextEncoder().encode(canonicalJson(terms)))).slice(0, 32)
}

const questionOf = ({ about, option: { amount, asset, payTo } }: Invocation, { principal }: Caller) => ({
  agent: principal,
  ...about,
  asset,
  payTo,
  amount
})

const sentenceOf = ({ amount, asset, kind, origin, payTo, rule }: Approval): string =>
  `An agent asks to pay ${amount} atomic units of ${asset} to ${payTo} for a resource (${kind}) of ` +
  `${origin ?? "a symbolic name"}. The rule ${rule} requires your approval.`

const waiting = (approval: Approval) =>
  retryableFault(
    fault("PAYMENT_REJECTED", "a person must approve this payment; repeat the identical call once it is approved", {
      approval: { id: approval.id, state: approval.state, rule: approval.rule }
    })
  )

const refusedByPerson = (rule: string) => fault("PAYMENT_REJECTED", "a person refused this payment", { rule })

/** The request as it stands, or a new one; none when there is no room. */
const requested = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller, rule: string) {
  const approvals = yield* Approvals
  const { policy } = yield* Config
  const crypto = yield* Crypto
  const { amount, ...question } = questionOf(invocation, caller)
  const asked: Approval = {
    ...question,
    id: approvalId(crypto, invocation),
    state: "pending",
    origin: question.origin ?? null,
    amount: amount.toString(),
    rule,
    askedAtMillis: yield* Clock.currentTimeMillis,
    mark: Hex.encode(crypto.randomBytes(8))
  }
  const standing = yield* approvals.find(asked.id, policy.approvalMillis)
  if (standing !== undefined) return standing
  return (yield* approvals.ask(asked, policy.approvalMillis)) ? asked : undefined
})

/**
 * Passes when the approval is given, which is used up by that; succeeds with it. A client's person is asked under the mark of the
 * request, so an answer is good for this request and, the request being taken away with it, once.
 */
const approved = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller, rule: string) {
  const { take } = yield* Approvals
  const { policy } = yield* Config
  const standing = yield* requested(invocation, caller, rule)
  if (standing === undefined)
    return yield* fault("PAYMENT_REJECTED", "a person must approve this payment, and too many requests wait already")
  // A refusal stands as long as a request would: asking again does not wear a person out.
  if (standing.state === "denied") return yield* refusedByPerson(rule)
  if (standing.state === "approved") return (yield* take(standing.id)) ? standing : yield* waiting(standing)
  if (policy.askClient && caller.ask !== undefined) {
    const answer = yield* caller.ask(`approve-${standing.mark}`, sentenceOf(standing))
    const isTaken = answer !== undefined && (yield* take(standing.id))
    if (answer === false) return yield* refusedByPerson(rule)
    if (answer === true && isTaken) return standing
  }
  return yield* waiting(standing)
})

const judge = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller) {
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
    return yield* fault("PAYMENT_REJECTED", "the operator's policy refuses this payment", { rule: decision.rule })
  }
  if (decision.outcome === "approve") {
    const used = yield* Effect.tapError(approved(invocation, caller, decision.rule), ({ _tag }) =>
      note(_tag === "InputNeeded" ? "asked" : "not approved")
    )
    yield* note("approved")
    // For the identical call, when this one came to no payment.
    return Effect.ignore(approvals.ask({ ...used, state: "approved" }, policy.approvalMillis))
  }
  yield* note("allowed")
  return Effect.void
})

export class Policy extends Context.Service<
  Policy,
  {
    /** Passes, or says why not. Succeeds with what gives an approval back that came to no payment. */
    readonly judge: (
      invocation: Invocation,
      caller: Caller
    ) => Effect.Effect<Effect.Effect<void>, ToolFault | InputNeeded>
    /** What would be decided; nothing is asked or noted. */
    readonly explain: (invocation: Invocation, caller: Caller) => Effect.Effect<Decision>
  }
>()("tollkeeper/mcp-tools-pay/Policy") {
  static readonly layer = Layer.effect(
    Policy,
    Effect.gen(function* () {
      const config = yield* Config
      const policy = { ...config.policy, rules: yield* canonicalRules(config.policy.rules) }
      const parts = Context.add(yield* Effect.context<Approvals | Config | Crypto>(), Config, { ...config, policy })
      return Policy.of({
        judge: (invocation, caller) =>
          judge(invocation, caller).pipe(
            Effect.catchTag("BudgetUnavailable", () => Effect.fail(noted)),
            Effect.provideContext(parts)
          ),
        explain: (invocation, caller) => Effect.sync(() => decide(policy, questionOf(invocation, caller)))
      })
    })
  )
}
