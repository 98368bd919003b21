// A cloud's instance metadata URL is never listed, not even where local origins are allowed.
import { expect, it } from "vitest"
import { readResourceUrl } from "../../../plugins/catalog/declaration/resourceUrl.ts"

const open = { requireHttpsOrigins: false, allowLocalOrigins: true }

it.each(["http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/", "http://[::ffff:a9fe:a9fe]:8080/x"])(
  "%s is never listed as a resource",
  (url) => {
    for (const type of ["http", "mcp"] as const)
      expect(readResourceUrl(type, url, undefined, open)).toMatchObject({ reason: "local_origin" })
  }
)

it("local and private network URLs are listed when local origins are allowed", () => {
  for (const url of ["http://127.0.0.1:3000/x", "http://10.0.0.7/x", "http://printer.local/x"])
    expect(readResourceUrl("http", url, undefined, open)).toMatchObject({ resource: url })
})
