// A view whose module is loaded when it is first shown: the first paint of a page waits for what it shows alone.
import { type ComponentType, h, type VNode } from "preact"
import { useEffect, useState } from "preact/hooks"

/** The component that `load` gives, once it is there. */
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
