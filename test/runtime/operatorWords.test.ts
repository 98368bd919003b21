// `--state` is a folder in every command; a state of settlements there is refused, with the flag that is meant.
import { expect, it } from "vitest"
import { stateIssue } from "../../runtime/operatorWords.ts"

it("refuses a settlement state as a folder, and names the flag", () => {
  const list = ["settlements", "list"]
  expect(stateIssue([...list, "--state", "settled", "--json"])).toMatch(/^--state names a folder; .* --which settled /)
  expect(stateIssue([...list, "--state=refused"])).toContain("--which refused")
  expect(stateIssue([...list, "--state", "./settled"])).toBeUndefined()
  expect(stateIssue([...list, "--which", "settled", "--state", "/srv/t"])).toBeUndefined()
  expect(stateIssue(["settlements", "show", "--state", "settled"])).toBeUndefined()
})
