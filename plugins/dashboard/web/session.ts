// The browser's session, sign-in and sign-out. A key is sent once and not kept; the session cookie is not readable by
// scripts.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { ask, post, useAsked } from "./ask.ts"
import { Notice, panel } from "./parts.ts"
import type { Session } from "./reports.ts"
import { tag } from "./tag.ts"

export type { Session } from "./reports.ts"

export const useSession = (): Session | undefined => {
  const asked = useAsked<Session>("/dashboard/session", 60_000)
  return asked.state === "ready" ? asked.body : undefined
}

const signOut = async (): Promise<void> => {
  await ask("/dashboard/session", { method: "DELETE", headers: { "x-tollkeeper-page": "1" } })
  location.reload()
}

export const SignedInAs = ({ session }: { readonly session: Session | undefined }): VNode<any> | null =>
  session === undefined || session.role === "nobody"
    ? null
    : tag(
        "span.end.row",
        tag("span.quiet", `${session.role} ${session.principal ?? ""}`),
        h("button", { type: "button", class: "small", onClick: signOut }, "Sign out")
      )

export const SignIn = (props: { readonly why: string }): VNode<any> => {
  const [state, change] = useState<{ readonly busy: boolean; readonly error?: string }>({ busy: false })
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get("key") ?? "")
    change({ busy: true })
    const answer = await post("/dashboard/session", { key })
    if (answer.state === "ready") location.reload()
    else change({ busy: false, error: answer.status === 401 ? "This key is not listed here." : answer.words })
  }
  return panel(
    { title: "Sign in with a key" },
    tag("p.quiet", props.why),
    state.error === undefined ? null : h(Notice, { kind: "error" }, state.error),
    h(
      "form",
      { class: "line", onSubmit: submit },
      tag("label", "Key", h("input", { type: "password", name: "key", required: true, autocomplete: "off" })),
      h("button", { type: "submit", class: "main", disabled: state.busy }, state.busy ? "One moment…" : "Sign in")
    )
  )
}
