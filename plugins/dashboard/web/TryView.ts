// A demonstration payment. On the embedded ledger, a button creates a funded buyer, lets it pay a seller, and shows
// each of the five steps with its real request and response. The page acts as the seller towards the facilitator.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { sentenceOf } from "./ask.ts"
import { panel } from "./parts.ts"
import { reasonText } from "./reasons.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

interface Step {
  readonly title: string
  readonly said: string
  readonly millis: number
  readonly body: unknown
  readonly failed: boolean
}

const titles = [
  "A buyer asks for the page, and the seller answers 402 with its terms",
  "The buyer signs one authorization by those terms",
  "The seller asks the facilitator to verify it",
  "The seller asks the facilitator to settle it",
  "The settlement is final: a client that lost the answer reads it again"
]

const post = (path: string, body: unknown): Promise<Response> =>
  fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })

const short = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body, (_, value: unknown) =>
      typeof value === "string" && value.length > 120 ? `${value.slice(0, 60)}… (${value.length} characters)` : value
    )
  )

/** A step was refused. The message has the reason. */
class Refused extends Error {}

/** Runs the steps and reports each as it completes. Resolves to the transaction of the settled payment. */
const runSteps = async (report: (step: Step) => void): Promise<string> => {
  const timed = async (index: number, said: string, work: () => Promise<Response>, isGood: (body: any) => boolean) => {
    const began = performance.now()
    const response = await work()
    const body: any = await response.json()
    const failed = !isGood(body)
    report({ title: titles[index]!, said, millis: performance.now() - began, body: short(body), failed })
    if (failed) throw new Refused(`Step ${index + 1} was refused. ${whyOf(response.status, body)}`)
    return body
  }
  await timed(
    0,
    "GET /demo/weather",
    () => fetch("/demo/weather"),
    (body) => body.accepts !== undefined
  )
  const { paymentPayload, paymentRequirements } = await timed(
    1,
    "POST /demo/payments",
    () => post("/demo/payments", {}),
    (body) => body.buyer !== undefined
  )
  const asked = { x402Version: 2, paymentPayload, paymentRequirements }
  await timed(
    2,
    "POST /verify",
    () => post("/verify", asked),
    (body) => body.isValid === true
  )
  const receipt = await timed(
    3,
    "POST /settle",
    () => post("/settle", asked),
    (body) => body.success === true
  )
  const again = `/settlements?hash=${receipt.transaction}`
  await timed(
    4,
    "GET /settlements?hash=…",
    () => fetch(again),
    (body) => body.items?.[0]?.status === "success"
  )
  return receipt.transaction as string
}

/** Reason of a refused payment, or else the message of the response. */
const whyOf = (status: number, body: any): string => {
  const reason = body?.invalidReason ?? body?.errorReason
  return typeof reason === "string" ? reasonText(reason) : sentenceOf(status, body)
}

const StepShown = ({ index, step }: { readonly index: number; readonly step: Step | undefined }): VNode<any> =>
  step === undefined
    ? tag("li.quiet", `${index + 1}. ${titles[index]}`)
    : h(
        "li",
        { class: step.failed ? "failed" : "done" },
        tag(
          "div.row",
          tag("strong", `${index + 1}. ${step.title}`),
          tag("span.quiet", `${step.said}, ${Math.round(step.millis)} ms`)
        ),
        tag("details", tag("summary", "Response"), h("pre", { tabIndex: 0 }, JSON.stringify(step.body, null, 2)))
      )

export const TryView = (): VNode<any> => {
  const [state, change] = useState<{
    readonly busy: boolean
    readonly steps: ReadonlyArray<Step>
    readonly hash?: string
    readonly error?: string
  }>({
    busy: false,
    steps: []
  })
  const run = async (): Promise<void> => {
    const steps: Array<Step> = []
    change({ busy: true, steps })
    const report = (step: Step) => {
      steps.push(step)
      change({ busy: true, steps: [...steps] })
    }
    try {
      const hash = await runSteps(report)
      change({ busy: false, steps: [...steps], hash })
    } catch (error) {
      const why = error instanceof Refused ? error.message : "The facilitator does not answer."
      change({ busy: false, steps: [...steps], error: why })
    }
  }
  return panel(
    {
      title: "Try it",
      wide: true,
      actions: h(
        "button",
        { type: "button", class: "main", disabled: state.busy, onClick: run },
        state.busy ? "Paying…" : "Make a payment"
      )
    },
    tag(
      "p.quiet",
      "A new buyer pays a demonstration seller 0.001 USDC, on the ledger that runs beside this facilitator."
    ),
    h(
      "ol",
      { class: "steps", "aria-live": "polite" },
      titles.map((title, index) => h(StepShown, { key: title, index, step: state.steps[index] }))
    ),
    state.error === undefined ? null : h("p", { class: "notice error", role: "alert" }, state.error),
    state.hash === undefined
      ? null
      : h("p", { class: "notice hint", role: "status" }, "Settled. ", h(Thing, { kind: "settlement", id: state.hash }))
  )
}
