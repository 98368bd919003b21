// Public facts of this facilitator, requested once per page: its assets, plugins and the explorer of its network.
import { useEffect, useState } from "preact/hooks"
import { ask } from "./ask.ts"
import type { About } from "./reports.ts"

let asked: Promise<About | undefined> | undefined
let known: About | undefined

const read = async (): Promise<About | undefined> => {
  const answer = await ask<About>("/dashboard/v1/about")
  known = answer.state === "ready" ? answer.body : undefined
  if (known === undefined) asked = undefined
  return known
}

/** Undefined until the response arrives. */
export const useFacts = (): About | undefined => {
  const [facts, change] = useState(known)
  useEffect(() => {
    let isOver = false
    asked ??= read()
    void asked.then((found) => void (isOver || change(found)))
    return () => void (isOver = true)
  }, [])
  return facts
}
