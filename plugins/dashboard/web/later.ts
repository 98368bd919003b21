// Loads a view's module when the view is first shown, so that the first paint of a page does not wait for it.
import { type ComponentType, h, type VNode } from "preact"
import { useEffect, useState } from "preact/hooks"

/** A component that shows a message until `load` has resolved. */
export const later = <Props extends object>(load: () => Promise<ComponentType<Props>>) => {
  let loaded: ComponentType<Props> | undefined
  return (props: Props): VNode<any> => {
    const [state, setState] = useState<"loading" | "loaded" | "failed">("loading")
    useEffect(() => {
      if (loaded !== undefined) return
      load().then(
        (view) => {
          loaded = view
          setState("loaded")
        },
        () => setState("failed")
      )
    }, [])
    if (loaded !== undefined) return h(loaded, props)
    return state === "failed"
      ? h("p", { role: "alert" }, "This view could not be loaded. Reload the page.")
      : h("p", { class: "quiet" }, "Loading…")
  }
}
