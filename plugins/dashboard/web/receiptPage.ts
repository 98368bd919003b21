// The page at `/receipts`: checks a receipt in this browser, with the published scripts that also run elsewhere
// (`/examples/receipts/verify.mjs`). A pasted receipt stays in the browser. For a pasted hash, the page requests the
// receipt from this facilitator. It requests only this facilitator's own DID document. For a receipt of another
// facilitator, or of a seller, the reader pastes the DID document too.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { checkAge, checkKept, issuerOf, openDelivery, outcomeOf, readKept } from "../../../examples/receipts/check.mjs"
import { ask, useAsked } from "./ask.ts"
import { Find } from "./Find.ts"
import { count, stroops } from "./format.ts"
import { Bar, type Child, draw, Foot, Moment, Notice, panel, written } from "./parts.ts"
import { useSession } from "./session.ts"
import { tag } from "./tag.ts"

/** Maximum characters of a pasted text. A receipt with its proof has a few thousand. */
const textMax = 100_000

interface Pasted {
  readonly receipt: string
  readonly did: string
  readonly sellerDid: string
}

type Claim = string | number | Readonly<Record<string, string>>

interface Verdict {
  readonly outcome: string
  readonly checks: ReadonlyArray<string>
  readonly claims: Readonly<Record<string, Claim>>
}

type Shown = { readonly state: "none" | "busy" } | { readonly state: "refused"; readonly why: string } | Checked
interface Checked {
  readonly state: "checked"
  readonly verdict: Verdict
}

const explained: Readonly<Record<string, string>> = {
  COMPLETE: "paid, and delivered: both sides signed for the same transaction",
  UNLINKED: "paid; the seller's receipt names no transaction",
  PAYMENT_ONLY: "paid; no receipt of the seller was checked",
  DELIVERY_ONLY: "delivered; no receipt of the payment was given",
  MISMATCH: "the seller's receipt belongs to another payment"
}

/** The issuer's DID document: pasted, or this facilitator's own. */
const documentOf = async (issuer: string, pasted: string): Promise<any> => {
  if (pasted.trim() !== "") return JSON.parse(pasted)
  const own = await ask<any>("/.well-known/did.json")
  if (own.state === "failed" || own.body.id !== issuer)
    throw new Error(
      `${issuer} signed this receipt: paste the did.json of that host below "Receipt of another facilitator"`
    )
  return own.body
}

const hashForm = /^(0x)?[0-9a-f]{64}$/i

/** Replaces a transaction's hash with the facilitator's receipt of that transaction. */
const receiptOf = async (text: string): Promise<string> => {
  const hash = text.trim().replace(/^0x/i, "").toLowerCase()
  if (!hashForm.test(hash)) return text.slice(0, textMax)
  const answer = await ask<unknown>(`/receipts/${hash}?proof=1`)
  if (answer.state === "failed") throw new Error(`this facilitator has no receipt for ${hash}`)
  return JSON.stringify(answer.body)
}

const check = async ({ did, receipt, sellerDid }: Pasted): Promise<Verdict> => {
  const kept = readKept(await receiptOf(receipt))
  const delivery =
    kept.delivery !== undefined && sellerDid.trim() !== ""
      ? await openDelivery(kept.delivery, JSON.parse(sellerDid))
      : undefined
  const delivered = delivery === undefined ? [] : ["The seller signed its receipt."]
  if (kept.receipt === undefined && delivery !== undefined)
    return { outcome: await outcomeOf(undefined, delivery), checks: delivered, claims: {} }
  if (kept.receipt === undefined) throw new Error("there is no receipt in this text")
  const issuer = issuerOf(kept.receipt)
  const { claims, key, proven } = await checkKept(kept, await documentOf(issuer, did))
  const time = proven?.tree.time
  // A receipt that the page has just read has a new checkpoint, unless the log is frozen.
  if (proven !== undefined && hashForm.test(receipt.trim())) await checkAge(proven.tree)
  const state = time === undefined ? [] : [`Its checkpoint is of ${new Date(time * 1_000).toISOString()}.`]
  const proof =
    proven === undefined
      ? "It comes without a proof. GET /receipts/HASH?proof=1 returns one."
      : proven.place === undefined
        ? "Its leaf is in the log of a signed checkpoint."
        : "Its leaf is in the log of a signed checkpoint, and the log has no other leaf of this payment."
  return {
    outcome: await outcomeOf(claims, delivery),
    checks: [`${key.id} signed it.`, proof, ...state, ...delivered],
    claims
  }
}

const claimLabels: Readonly<Record<string, string>> = {
  v: "Version",
  iss: "Signed by",
  network: "Network",
  transaction: "Transaction",
  ledger: "Ledger",
  closedAt: "Ledger closed",
  payer: "Payer",
  payTo: "Recipient",
  asset: "Asset",
  amount: "Amount, in atomic units",
  scheme: "Scheme",
  action: "Action",
  channel: "Channel",
  totals: "Claimed of channels, in atomic units",
  settlement: "Settlement id",
  attempts: "Attempts",
  fee: "Network fee",
  resource: "Resource",
  resourceHash: "Hash of the resource",
  identifierHash: "Hash of the payment identifier"
}

const shownClaim = (name: string, value: Claim): Child => {
  if (name === "closedAt" && /^[0-9]{1,10}$/.test(String(value)))
    return h(Moment, { at: new Date(Number(value) * 1_000).toISOString() })
  if (name === "fee" && /^[0-9]{1,18}$/.test(String(value))) return stroops(String(value))
  if (name === "amount" && /^[0-9]{1,39}$/.test(String(value))) return count(String(value))
  return tag("code.whole", typeof value === "object" ? JSON.stringify(value) : String(value))
}

const Claims = ({ verdict: { checks, claims, outcome } }: { readonly verdict: Verdict }): VNode<any> =>
  panel(
    { title: "What it shows", wide: true },
    h(
      "p",
      { role: "status" },
      h("span", { class: `state ${outcome === "MISMATCH" ? "bad" : "good"}` }, outcome.replace("_", " ").toLowerCase()),
      ` ${explained[outcome] ?? ""}`
    ),
    tag(
      "ul",
      checks.map((line) => h("li", { key: line }, written(line)))
    ),
    tag(
      "dl.figures",
      Object.entries(claims).map(([name, value]) =>
        h("div", { key: name }, tag("dt", claimLabels[name] ?? name), tag("dd", shownClaim(name, value)))
      )
    )
  )

const Field = (props: {
  readonly label: string
  readonly value: string
  readonly rows: number
  readonly onText: (text: string) => void
}): VNode<any> =>
  tag(
    "label",
    props.label,
    h("textarea", {
      rows: props.rows,
      spellcheck: false,
      maxLength: textMax,
      value: props.value,
      onInput: (event: Event) => props.onText((event.target as HTMLTextAreaElement).value)
    })
  )

const FileInput = ({ onText }: { readonly onText: (text: string) => void }): VNode<any> =>
  tag(
    "label",
    "From a file",
    h("input", {
      type: "file",
      onChange: async ({ target }: Event) => {
        const file = (target as HTMLInputElement).files?.[0]
        if (file !== undefined) onText((await file.slice(0, textMax).text()).trim())
      }
    })
  )

/** Offers the hash of the newest settled payment that this browser may read. Hidden if there is none. */
const Sample = ({ onText }: { readonly onText: (text: string) => void }): VNode<any> | null => {
  const asked = useAsked<{ readonly items: ReadonlyArray<{ readonly transaction_hash: string }> }>(
    "/analytics/v1/settlements?status=success&limit=1"
  )
  const newest = asked.state === "ready" ? asked.body.items[0]?.transaction_hash : undefined
  return newest === undefined
    ? null
    : h("button", { type: "button", onClick: () => onText(newest) }, "Use the newest payment here")
}

const Form = (props: { readonly onCheck: (pasted: Pasted) => void; readonly isBusy: boolean }): VNode<any> => {
  const [pasted, change] = useState<Pasted>({ receipt: "", did: "", sellerDid: "" })
  const setting = (name: keyof Pasted) => (text: string) => change({ ...pasted, [name]: text })
  const submit = (event: Event) => {
    event.preventDefault()
    props.onCheck(pasted)
  }
  const field = (name: keyof Pasted, label: string, rows: number) =>
    h(Field, { label, rows, value: pasted[name], onText: setting(name) })
  return panel(
    { title: "Check a receipt", wide: true },
    tag(
      "p.quiet",
      "Paste a receipt or a transaction hash, or choose a file. This browser checks the receipt and sends it nowhere. ",
      "For a hash, the page first reads the receipt from this facilitator."
    ),
    tag("p.row", h(FileInput, { onText: setting("receipt") }), h(Sample, { onText: setting("receipt") })),
    h(
      "form",
      { class: "paper", onSubmit: submit },
      field("receipt", "Transaction hash, or receipt: JWS, PAYMENT-RESPONSE header, answer of /settle or /receipts", 6),
      tag(
        "details",
        tag("summary", "Receipt of another facilitator, or of a seller"),
        field("did", "did.json of the facilitator that signed it; empty for this one", 2),
        field("sellerDid", "did.json of the seller, to check the seller's own receipt too", 2)
      ),
      h("button", { type: "submit", class: "main", disabled: props.isBusy || pasted.receipt.trim() === "" }, "Check")
    )
  )
}

const Page = (): VNode<any> => {
  const session = useSession()
  const [shown, show] = useState<Shown>({ state: "none" })
  const onCheck = (pasted: Pasted): void => {
    show({ state: "busy" })
    check(pasted).then(
      (verdict) => show({ state: "checked", verdict }),
      (error: Error) => show({ state: "refused", why: error.message })
    )
  }
  return tag(
    "div",
    h(Bar, { here: "/receipts", find: h(Find, { mayRead: session?.may_read === true }) }),
    h(
      "main",
      { id: "main" },
      tag("h1", "Receipts"),
      tag(
        "div.grid",
        h(Form, { onCheck, isBusy: shown.state === "busy" }),
        shown.state === "refused" ? h(Notice, { kind: "error" }, "Not verified: ", written(shown.why)) : null,
        shown.state === "checked" ? h(Claims, { verdict: shown.verdict }) : null
      )
    ),
    h(Foot, {})
  )
}

draw(h(Page, {}))
