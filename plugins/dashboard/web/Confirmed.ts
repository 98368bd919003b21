// A confirmed action: a button that opens a dialog, requires a reason for the audit log, runs the action once, and
// reports its result.
import { h, type VNode } from "preact"
import { useRef, useState } from "preact/hooks"
import type { Failed, Ready } from "./ask.ts"
import { type Child, Notice } from "./parts.ts"
import { tag } from "./tag.ts"

/** A labeled input of the form. */
export const Entry = ({
  label,
  ...input
}: { readonly label: string } & Readonly<Record<string, unknown>>): VNode<any> =>
  tag("p", tag("label", label, h("input", input)))

export const Confirmed = (props: {
  readonly label: string
  readonly question: string
  readonly disabled?: boolean
  readonly children?: Child
  /** Runs the action; `given` holds the form's fields. */
  readonly run: (note: string, given: FormData) => Promise<Ready<unknown> | Failed>
  readonly done: () => void
}): VNode<any> => {
  const dialog = useRef<HTMLDialogElement>(null)
  const [state, change] = useState<{ readonly busy: boolean; readonly error?: string }>({ busy: false })
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    const given = new FormData(event.currentTarget as HTMLFormElement)
    change({ busy: true })
    const answer = await props.run(String(given.get("note") ?? ""), given)
    change(answer.state === "failed" ? { busy: false, error: answer.words } : { busy: false })
    if (answer.state === "failed") return
    dialog.current?.close()
    props.done()
  }
  return tag(
    "span",
    h(
      "button",
      { type: "button", class: "small", disabled: props.disabled === true, onClick: () => dialog.current?.showModal() },
      props.label
    ),
    h(
      "dialog",
      { ref: dialog, "aria-label": props.question },
      h(
        "form",
        { onSubmit: submit },
        tag("p", tag("strong", props.question)),
        props.children,
        h(Entry, { label: "Reason, kept in the audit log ", name: "note", required: true, maxLength: 500 }),
        state.error === undefined ? null : h(Notice, { kind: "error" }, state.error),
        tag(
          "div.row",
          h("button", { type: "submit", class: "main", disabled: state.busy }, props.label),
          h("button", { type: "button", onClick: () => dialog.current?.close() }, "Cancel")
        )
      )
    )
  )
}
