// What both charts and flame graphs take from the style sheet, which knows the theme.
"use strict";

// The value of a variable of the style sheet in the present theme.
const colour = (() => {
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  return (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
})();
