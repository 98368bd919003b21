// Sign-in as the paid account: the page requests a challenge, the seller signs it with the account in a wallet or by a
// command, and pastes the signature. The account's key never reaches the page.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { ask, post, useAsked } from "./ask.ts"
import { Moment, Notice, panel } from "./parts.ts"
import { payeePageOf } from "./place.ts"
import type { AccountChallenged, AccountShown } from "./reports.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

export const useAccount = (): AccountShown | undefined => {
  const asked = useAsked<AccountShown>("/dashboard/account", 60_000)
  return asked.state === "ready" ? asked.body : undefined
}

const signOut = (query: string) => async (): Promise<void> => {
  await ask(`/dashboard/account${query}`, { method: "DELETE", headers: { "x-tollkeeper-page": "1" } })
  location.reload()
}

export const AccountBar = ({ of }: { readonly of: AccountShown }): VNode<any> =>
  panel(
    {
      title: "Signed in as an account",
      wide: true,
      actions: tag(
        "span.row",
        h("button", { type: "button", class: "small", onClick: signOut("") }, "Sign out"),
        h("button", { type: "button", class: "small", onClick: signOut("?everywhere=1") }, "Sign out everywhere")
      )
    },
    tag(
      "p.row",
      of.account === null ? null : h(Thing, { kind: "account", id: of.account, href: payeePageOf(of.account) }),
      tag("span.quiet", "until"),
      h(Moment, { at: of.until })
    )
  )

const field = (event: SubmitEvent, name: string): string => {
  event.preventDefault()
  return String(new FormData(event.currentTarget as HTMLFormElement).get(name) ?? "").trim()
}

const AskChallenge = (props: { readonly busy: boolean; readonly asked: (account: string) => void }): VNode<any> =>
  h(
    "form",
    { class: "line", onSubmit: (event: SubmitEvent) => props.asked(field(event, "account")) },
    tag(
      "label",
      "Account that is paid (G… or C…)",
      h("input", { name: "account", required: true, maxLength: 128, spellcheck: false, autocomplete: "off" })
    ),
    h("button", { type: "submit", class: "main", disabled: props.busy }, "Continue")
  )

const AnswerChallenge = (props: {
  readonly of: AccountChallenged
  readonly busy: boolean
  readonly answered: (signature: string) => void
  readonly back: () => void
}): VNode<any> =>
  tag(
    "div",
    tag("h3", "1. Have the account sign this sentence"),
    h("pre", { class: "paste", tabIndex: 0 }, props.of.challenge),
    tag(
      "p.quiet",
      "In a wallet: “Sign message” (SEP-53), with the sentence unchanged. With the Stellar command line, where ",
      tag("code", "NAME"),
      " is the account’s identity:"
    ),
    h("pre", { class: "paste", tabIndex: 0 }, `stellar message sign '${props.of.challenge}' --sign-with-key NAME`),
    props.of.authorization === undefined
      ? null
      : tag(
          "div",
          tag("p.quiet", "A contract account signs this authorization entry instead (SEP-43, signAuthEntry):"),
          h("pre", { class: "paste", tabIndex: 0 }, props.of.authorization)
        ),
    tag(
      "p.quiet",
      "It is a sentence, not a transaction: signing it moves nothing. It can be answered once, until ",
      h(Moment, { at: props.of.expires_at })
    ),
    tag("h3", "2. Paste the signature"),
    h(
      "form",
      { class: "line", onSubmit: (event: SubmitEvent) => props.answered(field(event, "signature")) },
      tag(
        "label",
        "Signature, in base64",
        h("input", { name: "signature", required: true, maxLength: 4_000, spellcheck: false, autocomplete: "off" })
      ),
      h("button", { type: "submit", class: "main", disabled: props.busy }, "Sign in"),
      h("button", { type: "button", onClick: props.back }, "Start again")
    )
  )

export const AccountSignIn = (): VNode<any> => {
  const [state, change] = useState<{
    readonly busy: boolean
    readonly of?: AccountChallenged
    readonly error?: string
  }>({ busy: false })
  const asked = async (account: string): Promise<void> => {
    change({ busy: true })
    const answer = await post<AccountChallenged>("/dashboard/account/challenge", { account })
    change(answer.state === "ready" ? { busy: false, of: answer.body } : { busy: false, error: answer.words })
  }
  const { busy, error, of } = state
  const answered = async (signature: string): Promise<void> => {
    if (of === undefined) return
    change({ busy: true, of })
    const answer = await post("/dashboard/account", { account: of.account, challenge: of.challenge, signature })
    if (answer.state === "ready") location.reload()
    else change({ busy: false, of, error: answer.words })
  }
  return panel(
    { title: "Sign in with your account" },
    tag("p.quiet", "The account that buyers pay shows its own sales and listings. No key is needed."),
    error === undefined ? null : h(Notice, { kind: "error" }, error),
    of === undefined
      ? h(AskChallenge, { busy, asked })
      : h(AnswerChallenge, { of, busy, answered, back: () => change({ busy: false }) })
  )
}
