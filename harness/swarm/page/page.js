// The live figures on a page of their own, as for a second screen.

import { Live, style } from "./live.js";
import { follow } from "./theme.js";

const live = new Live();
style(document);
follow(() => live.draw());
document.querySelector("main").append(live.element);
live.watch();
